
// Values of Go as lines of JSON, and calls of a function by its own types. The text follows that of a completion or
// of tests in the same file; its names begin with rk, and the packages that it imports are renamed to do so too.

const (
	rkMostBytes = 8 << 20
	rkMostDepth = 100
)

// How a tester ends where no answer can be used, so that it never goes on with a wrong value.
const (
	rkNoAnswer     = 71
	rkNoJSON       = 72
	rkWrongType    = 73
	rkTooLong      = 74
	rkNoReader     = 75
	rkTestsAtFault = 77
)

// ---- values by types -----------------------------------------------------------------------------------------

type rkMismatch struct{ rkText string }

func rkRefuse(rkType rkreflect.Type) { panic(rkMismatch{"an argument is no " + rkType.String()}) }

// rkTagged returns what stands behind a tag, and whether the value has it.
func rkTagged(rkTree any, rkTags ...string) (any, bool) {
	if rkObject, rkIs := rkTree.(map[string]any); rkIs && len(rkObject) == 1 {
		for _, rkTag := range rkTags {
			if rkContent, rkHas := rkObject[rkTag]; rkHas {
				return rkContent, true
			}
		}
	}
	return rkTree, false
}

var (
	rkBigInt = rkreflect.TypeOf(rkbig.Int{})
	rkErrors = rkreflect.TypeOf((*error)(nil)).Elem()
)

func rkRead(rkTree any, rkInto rkreflect.Value) {
	rkType := rkInto.Type()
	if rkTyped, rkIs := rkTagged(rkTree, "$t"); rkIs && rkType.Kind() != rkreflect.Interface {
		rkTree = rkItems(rkTyped, rkType)[1]
	}
	if rkType == rkBigInt {
		rkInto.Set(rkreflect.ValueOf(*rkInteger(rkTree, rkType)))
		return
	}
	switch rkType.Kind() {
	case rkreflect.Bool:
		rkTruth, rkIs := rkTree.(bool)
		if !rkIs {
			rkRefuse(rkType)
		}
		rkInto.SetBool(rkTruth)
	case rkreflect.Int, rkreflect.Int8, rkreflect.Int16, rkreflect.Int32, rkreflect.Int64:
		rkReadInteger(rkTree, rkInto)
	case rkreflect.Uint, rkreflect.Uint8, rkreflect.Uint16, rkreflect.Uint32, rkreflect.Uint64:
		if rkNumber, rkIs := rkLetter(rkTree, rkInto); rkIs {
			rkInto.SetUint(rkNumber)
			return
		}
		rkWhole := rkInteger(rkTree, rkType)
		if !rkWhole.IsUint64() || rkInto.OverflowUint(rkWhole.Uint64()) {
			rkRefuse(rkType)
		}
		rkInto.SetUint(rkWhole.Uint64())
	case rkreflect.Float32, rkreflect.Float64:
		rkInto.SetFloat(rkFloat(rkTree, rkType))
	case rkreflect.String:
		rkText, rkIs := rkTree.(string)
		if !rkIs {
			rkRefuse(rkType)
		}
		rkInto.SetString(rkText)
	case rkreflect.Slice, rkreflect.Array:
		rkReadList(rkTree, rkInto)
	case rkreflect.Map:
		rkReadMap(rkTree, rkInto)
	case rkreflect.Pointer:
		if rkTree != nil {
			rkInto.Set(rkreflect.New(rkType.Elem()))
			rkRead(rkTree, rkInto.Elem())
		}
	case rkreflect.Struct:
		rkReadStruct(rkTree, rkInto)
	case rkreflect.Interface:
		if rkText, rkIs := rkTree.(string); rkIs && rkType == rkErrors {
			rkInto.Set(rkreflect.ValueOf(rkfmt.Errorf("%s", rkText)))
		} else if rkValue := rkNatural(rkTree); rkValue != nil {
			if !rkreflect.TypeOf(rkValue).AssignableTo(rkType) {
				rkRefuse(rkType)
			}
			rkInto.Set(rkreflect.ValueOf(rkValue))
		}
	default:
		rkRefuse(rkType)
	}
}

// rkReadStruct reads the fields of a struct from a list, in their order.
func rkReadStruct(rkTree any, rkInto rkreflect.Value) {
	rkList := rkItems(rkTree, rkInto.Type())
	if len(rkList) != rkInto.NumField() {
		rkRefuse(rkInto.Type())
	}
	for rkIndex, rkItem := range rkList {
		rkField := rkInto.Field(rkIndex) // reflection does not set a field whose name is small
		rkRead(rkItem, rkreflect.NewAt(rkField.Type(), rkunsafe.Pointer(rkField.UnsafeAddr())).Elem())
	}
}

// rkLetter returns the number of the letter that a text of one is.
func rkLetter(rkTree any, rkInto rkreflect.Value) (uint64, bool) {
	rkText, _ := rkTree.(string)
	rkRunes := []rune(rkText)
	if len(rkRunes) != 1 {
		return 0, false
	}
	rkIsByte := rkInto.Kind() == rkreflect.Uint8 && rkRunes[0] < 256
	return uint64(rkRunes[0]), rkIsByte || rkInto.Kind() == rkreflect.Int32
}

// rkReadInteger reads an integer, and a rune from a text of one letter.
func rkReadInteger(rkTree any, rkInto rkreflect.Value) {
	if rkNumber, rkIs := rkLetter(rkTree, rkInto); rkIs {
		rkInto.SetInt(int64(rkNumber))
		return
	}
	rkWhole := rkInteger(rkTree, rkInto.Type())
	if !rkWhole.IsInt64() || rkInto.OverflowInt(rkWhole.Int64()) {
		rkRefuse(rkInto.Type())
	}
	rkInto.SetInt(rkWhole.Int64())
}

func rkInteger(rkTree any, rkType rkreflect.Type) *rkbig.Int {
	if _, rkIs := rkTree.(string); rkIs {
		rkRefuse(rkType)
	}
	rkContent, _ := rkTagged(rkTree, "$i")
	rkDigits := rkfmt.Sprint(rkContent)
	if rkWhole, rkIs := new(rkbig.Int).SetString(rkDigits, 10); rkIs {
		return rkWhole
	}
	if rkNumber, rkIs := rkTree.(rkjson.Number); rkIs { // 3.0 and 1e3 are whole
		if rkFloat, rkFault := rkNumber.Float64(); rkFault == nil && rkFloat == float64(int64(rkFloat)) {
			return rkbig.NewInt(int64(rkFloat))
		}
	}
	rkRefuse(rkType)
	return nil
}

func rkFloat(rkTree any, rkType rkreflect.Type) float64 {
	if rkName, rkIs := rkTagged(rkTree, "$f"); rkIs {
		switch rkName {
		case "NaN":
			return rkmath.NaN()
		case "-Infinity":
			return rkmath.Inf(-1)
		}
		return rkmath.Inf(1)
	}
	if rkDigits, rkIs := rkTagged(rkTree, "$i"); rkIs {
		rkTree = rkjson.Number(rkfmt.Sprint(rkDigits))
	}
	rkNumber, rkIs := rkTree.(rkjson.Number)
	if !rkIs {
		rkRefuse(rkType)
	}
	rkFloat, _ := rkNumber.Float64() // beyond its range it is infinite
	return rkFloat
}

func rkItems(rkTree any, rkType rkreflect.Type) []any {
	rkContent, _ := rkTagged(rkTree, "$s", "$m", "$o")
	rkList, rkIs := rkContent.([]any)
	if !rkIs {
		rkRefuse(rkType)
	}
	return rkList
}

func rkReadList(rkTree any, rkInto rkreflect.Value) {
	rkType := rkInto.Type()
	if rkTree == nil && rkType.Kind() == rkreflect.Slice {
		return
	}
	if rkText, rkIs := rkTree.(string); rkIs && rkType.Kind() == rkreflect.Slice {
		switch rkType.Elem().Kind() { // a text of bytes or of runes
		case rkreflect.Uint8:
			rkInto.Set(rkreflect.ValueOf([]byte(rkText)).Convert(rkType))
			return
		case rkreflect.Int32:
			rkInto.Set(rkreflect.ValueOf([]rune(rkText)).Convert(rkType))
			return
		}
	}
	rkList := rkItems(rkTree, rkType)
	if rkType.Kind() == rkreflect.Slice {
		rkInto.Set(rkreflect.MakeSlice(rkType, len(rkList), len(rkList)))
	} else if rkType.Len() != len(rkList) {
		rkRefuse(rkType)
	}
	for rkIndex, rkItem := range rkList {
		rkRead(rkItem, rkInto.Index(rkIndex))
	}
}

// rkKeyOf returns a key, and a number for its text, since the keys of JSON's objects are texts.
func rkKeyOf(rkTree any, rkInto rkreflect.Value) any {
	rkText, rkIs := rkTree.(string)
	rkIsRune := rkInto.Kind() == rkreflect.Int32 && len([]rune(rkText)) == 1
	if rkIs && !rkIsRune && (rkInto.CanInt() || rkInto.CanUint() || rkInto.CanFloat()) {
		return rkjson.Number(rkText)
	}
	return rkTree
}

// rkReadMap reads a mapping, and a set into a map to bool or to struct{}.
func rkReadMap(rkTree any, rkInto rkreflect.Value) {
	rkType := rkInto.Type()
	if rkTree == nil {
		return
	}
	_, rkIsSet := rkTagged(rkTree, "$s")
	rkInto.Set(rkreflect.MakeMap(rkType))
	for _, rkPair := range rkItems(rkTree, rkType) {
		rkKey, rkValue := rkreflect.New(rkType.Key()).Elem(), rkreflect.New(rkType.Elem()).Elem()
		if rkIsSet {
			rkRead(rkPair, rkKey)
			if rkValue.Kind() == rkreflect.Bool {
				rkValue.SetBool(true)
			}
		} else {
			rkBoth := rkItems(rkPair, rkType)
			if len(rkBoth) != 2 {
				rkRefuse(rkType)
			}
			rkRead(rkKeyOf(rkBoth[0], rkKey), rkKey)
			rkRead(rkBoth[1], rkValue)
		}
		rkInto.SetMapIndex(rkKey, rkValue)
	}
}

// rkNatural returns what a value is where its type says nothing: a whole number is an int, a list an []interface{}.
func rkNatural(rkTree any) any {
	switch rkValue := rkTree.(type) {
	case nil, bool, string:
		return rkValue
	case rkjson.Number:
		if rkWhole, rkFault := rkValue.Int64(); rkFault == nil {
			return int(rkWhole)
		}
		return rkFloat(rkValue, rkreflect.TypeOf(0.0))
	case []any:
		rkList := make([]any, len(rkValue))
		for rkIndex, rkItem := range rkValue {
			rkList[rkIndex] = rkNatural(rkItem)
		}
		return rkList
	}
	if _, rkIs := rkTagged(rkTree, "$f"); rkIs {
		return rkFloat(rkTree, rkreflect.TypeOf(0.0))
	}
	if _, rkIs := rkTagged(rkTree, "$i"); rkIs {
		return rkInteger(rkTree, rkBigInt)
	}
	if rkTyped, rkIs := rkTagged(rkTree, "$t"); rkIs {
		return rkOfNamedType(rkTyped)
	}
	if _, rkIs := rkTagged(rkTree, "$u"); rkIs {
		return nil
	}
	rkMap := map[any]any{}
	rkReadMap(rkTree, rkreflect.ValueOf(&rkMap).Elem())
	return rkMap
}

// rkTypes are those that a value in an interface keeps between two programs of Go.
var rkTypes = func() map[string]rkreflect.Type {
	rkByName := map[string]rkreflect.Type{}
	for _, rkValue := range []any{
		int8(0), int16(0), int32(0), int64(0), uint(0), uint8(0), uint16(0), uint32(0), uint64(0), float32(0),
		[]int{}, []float64{}, []string{}, []bool{}, [][]int{}, map[string]int{}, map[string]string{},
		map[string]any{}, map[int]int{}, map[int]string{}, map[int]bool{}, map[rune]int{},
	} {
		rkType := rkreflect.TypeOf(rkValue)
		rkByName[rkType.String()] = rkType
	}
	return rkByName
}()

func rkOfNamedType(rkTyped any) any {
	rkPair, rkIs := rkTyped.([]any)
	if !rkIs || len(rkPair) != 2 || rkTypes[rkfmt.Sprint(rkPair[0])] == nil {
		rkRefuse(rkreflect.TypeOf(&rkTyped).Elem())
	}
	rkInto := rkreflect.New(rkTypes[rkfmt.Sprint(rkPair[0])]).Elem()
	rkRead(rkPair[1], rkInto)
	return rkInto.Interface()
}

// ---- values to JSON ------------------------------------------------------------------------------------------

// rkWriter writes values; between two programs of Go it names the types of what is in interfaces, where needed.
type rkWriter struct {
	rkbytes.Buffer
	rkNamesTypes bool
}

func (rkLine *rkWriter) rkWrite(rkValue rkreflect.Value, rkDepth int) {
	if rkDepth > rkMostDepth {
		panic("nested too deep")
	}
	if !rkValue.IsValid() {
		rkLine.WriteString("null")
		return
	}
	if rkValue.Type() == rkBigInt {
		rkWhole := rkValue.Interface().(rkbig.Int)
		rkfmt.Fprintf(rkLine, `{"$i":"%s"}`, rkWhole.String())
		return
	}
	switch rkValue.Kind() {
	case rkreflect.Bool, rkreflect.Int, rkreflect.Int8, rkreflect.Int16, rkreflect.Int32, rkreflect.Int64,
		rkreflect.Uint, rkreflect.Uint8, rkreflect.Uint16, rkreflect.Uint32, rkreflect.Uint64:
		rkfmt.Fprintf(rkLine, "%v", rkValue)
	case rkreflect.Float32:
		rkLine.rkWriteFloat(rkValue.Float(), 32)
	case rkreflect.Float64:
		rkLine.rkWriteFloat(rkValue.Float(), 64)
	case rkreflect.String:
		rkLine.rkWriteText(rkValue.String())
	case rkreflect.Slice, rkreflect.Array:
		rkLine.rkWriteList(rkValue, rkDepth)
	case rkreflect.Map:
		rkLine.rkWriteMap(rkValue, rkDepth)
	case rkreflect.Struct:
		rkLine.rkWriteStruct(rkValue, rkDepth)
	case rkreflect.Pointer:
		rkLine.rkWrite(rkValue.Elem(), rkDepth+1)
	case rkreflect.Interface:
		rkLine.rkWriteAny(rkValue.Elem(), rkDepth+1)
	default:
		rkfmt.Fprintf(rkLine, `{"$x":%q}`, rkValue.Type().String())
	}
}

func (rkLine *rkWriter) rkWriteAny(rkValue rkreflect.Value, rkDepth int) {
	if rkLine.rkNamesTypes && rkValue.IsValid() && rkTypes[rkValue.Type().String()] == rkValue.Type() {
		rkfmt.Fprintf(rkLine, `{"$t":["%s",`, rkValue.Type())
		rkLine.rkWrite(rkValue, rkDepth)
		rkLine.WriteString("]}")
		return
	}
	if rkFault, rkIs := rkInterfaceOf(rkValue).(error); rkIs {
		rkLine.rkWriteText(rkFault.Error())
		return
	}
	rkLine.rkWrite(rkValue, rkDepth)
}

func rkInterfaceOf(rkValue rkreflect.Value) any {
	if !rkValue.IsValid() || !rkValue.CanInterface() {
		return nil
	}
	return rkValue.Interface()
}

func (rkLine *rkWriter) rkWriteFloat(rkNumber float64, rkBits int) {
	if rkmath.IsNaN(rkNumber) {
		rkLine.WriteString(`{"$f":"NaN"}`)
		return
	}
	if rkmath.IsInf(rkNumber, 0) {
		rkLine.WriteString(map[bool]string{true: `{"$f":"Infinity"}`, false: `{"$f":"-Infinity"}`}[rkNumber > 0])
		return
	}
	rkDigits := rkstrconv.FormatFloat(rkNumber, 'g', -1, rkBits)
	rkLine.WriteString(rkDigits)
	if !rkstrings.ContainsAny(rkDigits, ".e") {
		rkLine.WriteString(".0")
	}
}

func (rkLine *rkWriter) rkWriteText(rkText string) {
	rkQuoted, _ := rkjson.Marshal(rkText)
	rkLine.Write(rkQuoted)
}

func (rkLine *rkWriter) rkWriteList(rkValue rkreflect.Value, rkDepth int) {
	if rkLine.rkNamesTypes && rkValue.Kind() == rkreflect.Slice && rkValue.IsNil() {
		rkLine.WriteString("null")
		return
	}
	rkLine.WriteByte('[')
	for rkIndex := 0; rkIndex < rkValue.Len(); rkIndex++ {
		if rkIndex > 0 {
			rkLine.WriteByte(',')
		}
		rkLine.rkWrite(rkValue.Index(rkIndex), rkDepth+1)
	}
	rkLine.WriteByte(']')
}

func (rkLine *rkWriter) rkWriteStruct(rkValue rkreflect.Value, rkDepth int) {
	rkLine.WriteByte('[')
	for rkIndex := 0; rkIndex < rkValue.NumField(); rkIndex++ {
		if rkIndex > 0 {
			rkLine.WriteByte(',')
		}
		rkLine.rkWrite(rkValue.Field(rkIndex), rkDepth+1)
	}
	rkLine.WriteByte(']')
}

func (rkLine *rkWriter) rkWriteMap(rkValue rkreflect.Value, rkDepth int) {
	if rkLine.rkNamesTypes && rkValue.IsNil() {
		rkLine.WriteString("null")
		return
	}
	rkLine.WriteString(`{"$m":[`)
	for rkIndex, rkKey := range rkValue.MapKeys() {
		if rkIndex > 0 {
			rkLine.WriteByte(',')
		}
		rkLine.WriteByte('[')
		rkLine.rkWrite(rkKey, rkDepth+1)
		rkLine.WriteByte(',')
		rkLine.rkWrite(rkValue.MapIndex(rkKey), rkDepth+1)
		rkLine.WriteByte(']')
	}
	rkLine.WriteString("]}")
}

func rkEncode(rkValue rkreflect.Value, rkNamesTypes bool) string {
	rkLine := rkWriter{rkNamesTypes: rkNamesTypes}
	rkLine.rkWrite(rkValue, 0)
	return rkLine.String()
}

// ---- lines ---------------------------------------------------------------------------------------------------

var (
	rkIn  *rkbufio.Reader
	rkOut *rkos.File
)

func rkOpen(rkInput, rkOutput uintptr) {
	rkIn = rkbufio.NewReaderSize(rkos.NewFile(rkInput, "in"), 1<<16)
	rkOut = rkos.NewFile(rkOutput, "out")
}

func rkNext() ([]byte, bool) {
	var rkLine []byte
	for {
		rkPart, rkFault := rkIn.ReadSlice('\n')
		rkLine = append(rkLine, rkPart...)
		if rkFault == nil {
			return rkLine, true
		}
		if rkFault != rkbufio.ErrBufferFull {
			return nil, false
		}
		if len(rkLine) > rkMostBytes {
			rkos.Exit(rkTooLong)
		}
	}
}

func rkPut(rkLine string) {
	if _, rkFault := rkOut.WriteString(rkLine + "\n"); rkFault != nil {
		rkos.Exit(rkNoReader)
	}
}

func rkParse(rkLine []byte) any {
	var rkTree any
	rkDecoder := rkjson.NewDecoder(rkbytes.NewReader(rkLine))
	rkDecoder.UseNumber()
	if rkDecoder.Decode(&rkTree) != nil {
		panic(rkMismatch{"not JSON"})
	}
	return rkTree
}

// ---- the answerer --------------------------------------------------------------------------------------------

func rkServe(rkFunction any) {
	rkOpen(3, 4)
	rkCall := rkreflect.ValueOf(rkFunction)
	for {
		rkLine, rkHas := rkNext()
		if !rkHas {
			rkos.Exit(0)
		}
		rkPut(rkAnswer(rkCall, rkLine))
	}
}

func rkAnswer(rkCall rkreflect.Value, rkLine []byte) (rkText string) {
	defer func() {
		if rkFault := recover(); rkFault != nil {
			rkQuoted, _ := rkjson.Marshal(rkfmt.Sprint(rkFault))
			rkText = `{"e":` + string(rkQuoted) + "}"
		}
	}()
	rkTrees, rkIsTesters := rkTagged(rkParse(rkLine), "a")
	rkValues := rkArguments(rkCall.Type(), rkItems(rkTrees, rkCall.Type()))
	rkBefore := rkEncodeAll(rkValues, rkIsTesters)
	var rkResults []rkreflect.Value
	if rkCall.Type().IsVariadic() {
		rkResults = rkCall.CallSlice(rkValues)
	} else {
		rkResults = rkCall.Call(rkValues)
	}
	rkAfter := rkEncodeAll(rkValues, rkIsTesters)
	if !rkIsTesters {
		rkResults = rkWithoutError(rkResults)
		return `{"v":` + rkResult(rkResults, rkBefore, rkAfter) + "}"
	}
	rkChanged := []string{}
	for rkIndex := range rkValues {
		if rkAfter[rkIndex] != rkBefore[rkIndex] {
			rkChanged = append(rkChanged, rkfmt.Sprintf("[%d,%s]", rkIndex, rkAfter[rkIndex]))
		}
	}
	rkAll := rkstrings.Join(rkEncodeAll(rkResults, true), ",")
	return `{"v":[` + rkAll + `],"a":[` + rkstrings.Join(rkChanged, ",") + "]}"
}

// rkWithoutError returns results without an error that is the last of them; one that is not nil is what the call raises.
func rkWithoutError(rkResults []rkreflect.Value) []rkreflect.Value {
	rkLast := len(rkResults) - 1
	if rkLast < 0 || rkResults[rkLast].Type() != rkErrors {
		return rkResults
	}
	if !rkResults[rkLast].IsNil() {
		panic(rkResults[rkLast].Interface())
	}
	return rkResults[:rkLast]
}

// rkWithRest returns arguments whose last is the list of all that are left, unless it is a list already.
func rkWithRest(rkTrees []any, rkFixed int) []any {
	if len(rkTrees) < rkFixed {
		return rkTrees
	}
	if len(rkTrees) == rkFixed+1 {
		if _, rkIs := rkTrees[rkFixed].([]any); rkIs {
			return rkTrees
		}
	}
	return append(append([]any{}, rkTrees[:rkFixed]...), any(append([]any{}, rkTrees[rkFixed:]...)))
}

func rkArguments(rkType rkreflect.Type, rkTrees []any) []rkreflect.Value {
	if rkType.IsVariadic() {
		rkTrees = rkWithRest(rkTrees, rkType.NumIn()-1)
	}
	if rkType.NumIn() != len(rkTrees) {
		panic(rkMismatch{"another number of arguments"})
	}
	rkValues := make([]rkreflect.Value, len(rkTrees))
	for rkIndex, rkTree := range rkTrees {
		rkValues[rkIndex] = rkreflect.New(rkType.In(rkIndex)).Elem()
		rkRead(rkTree, rkValues[rkIndex])
	}
	return rkValues
}

func rkEncodeAll(rkValues []rkreflect.Value, rkNamesTypes bool) []string {
	rkTexts := make([]string, len(rkValues))
	for rkIndex, rkValue := range rkValues {
		rkTexts[rkIndex] = rkEncode(rkValue, rkNamesTypes)
	}
	return rkTexts
}

// rkResult returns one result as it is and several as a list; without one, the first argument that was changed.
func rkResult(rkResults []rkreflect.Value, rkBefore, rkAfter []string) string {
	rkTexts := rkEncodeAll(rkResults, false)
	if len(rkTexts) == 1 {
		return rkTexts[0]
	}
	if len(rkTexts) > 1 {
		return "[" + rkstrings.Join(rkTexts, ",") + "]"
	}
	for rkIndex, rkText := range rkAfter {
		if rkText != rkBefore[rkIndex] {
			return rkText
		}
	}
	return "null"
}
