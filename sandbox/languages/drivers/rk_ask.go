
// Calls of a function that is in another process, and the part of testing and testify that data sets use.

var (
	rkCalls  int
	rkFailed bool
)

// rkAsk writes a call and puts the results of its answer where the pointers say.
func rkAsk(rkValues []any, rkResults ...any) {
	rkCalls++
	rkPut(`{"a":` + rkEncode(rkreflect.ValueOf(rkValues), true) + "}")
	rkLine, rkHas := rkNext()
	if !rkHas {
		rkos.Exit(rkNoAnswer)
	}
	rkReply := rkReplyOf(rkLine)
	if rkFault, rkIs := rkReply["e"]; rkIs {
		panic(rkfmt.Sprint("the function panicked: ", rkFault))
	}
	defer func() {
		if recover() != nil {
			rkos.Exit(rkWrongType)
		}
	}()
	rkAll := rkReply["v"].([]any)
	if len(rkAll) != len(rkResults) {
		rkos.Exit(rkWrongType)
	}
	for rkIndex, rkResult := range rkResults {
		rkRead(rkAll[rkIndex], rkreflect.ValueOf(rkResult).Elem())
	}
	for _, rkPair := range rkReply["a"].([]any) {
		rkIndex, _ := rkPair.([]any)[0].(rkjson.Number).Int64()
		rkWriteBack(rkreflect.ValueOf(rkValues[rkIndex]), rkPair.([]any)[1])
	}
}

func rkReplyOf(rkLine []byte) map[string]any {
	defer func() {
		if recover() != nil {
			rkos.Exit(rkNoJSON)
		}
	}()
	return rkParse(rkLine).(map[string]any)
}

func rkWriteBack(rkValue rkreflect.Value, rkTree any) {
	rkNow := rkreflect.New(rkValue.Type()).Elem()
	rkRead(rkTree, rkNow)
	switch rkValue.Kind() {
	case rkreflect.Slice:
		rkreflect.Copy(rkValue, rkNow)
	case rkreflect.Pointer:
		rkValue.Elem().Set(rkNow.Elem())
	case rkreflect.Map:
		for _, rkKey := range rkValue.MapKeys() {
			rkValue.SetMapIndex(rkKey, rkreflect.Value{})
		}
		for _, rkKey := range rkNow.MapKeys() {
			rkValue.SetMapIndex(rkKey, rkNow.MapIndex(rkKey))
		}
	}
}

// rkTest runs tests; an end without a call shows nothing.
func rkTest(rkTests ...func(*rkT)) {
	for _, rkRun := range rkTests {
		rkRun(&rkT{})
	}
	if rkFailed {
		rkos.Exit(1)
	}
	if rkCalls == 0 {
		rkos.Exit(rkTestsAtFault)
	}
}

type rkT struct{}

func (*rkT) Helper()                {}
func (*rkT) Parallel()              {}
func (*rkT) Log(...any)             {}
func (*rkT) Logf(string, ...any)    {}
func (*rkT) Name() string           { return "test" }
func (*rkT) Failed() bool           { return rkFailed }
func (*rkT) Fail()                  { rkFailed = true }
func (*rkT) FailNow()               { rkos.Exit(1) }
func (rkTest *rkT) Run(rkName string, rkRun func(*rkT)) bool {
	rkRun(rkTest)
	return !rkFailed
}
func (*rkT) Error(rkWords ...any) {
	rkfmt.Fprintln(rkos.Stderr, rkWords...)
	rkFailed = true
}
func (rkTest *rkT) Errorf(rkForm string, rkWords ...any) { rkTest.Error(rkfmt.Sprintf(rkForm, rkWords...)) }
func (rkTest *rkT) Fatal(rkWords ...any) {
	rkTest.Error(rkWords...)
	rkos.Exit(1)
}
func (rkTest *rkT) Fatalf(rkForm string, rkWords ...any) { rkTest.Fatal(rkfmt.Sprintf(rkForm, rkWords...)) }

type rkAssert struct{}

var assert, require rkAssert

func (rkAssert) New(any) rkAssert { return rkAssert{} }

// rkShown returns whether a claim is true; one that is not ends the tests.
func rkShown(rkIsTrue bool, rkWords ...any) bool {
	if !rkIsTrue {
		rkfmt.Fprintln(rkos.Stderr, append([]any{"assertion failed:"}, rkWords...)...)
		rkos.Exit(1)
	}
	return true
}

// rkRest returns a claim's arguments without the *testing.T that its function form has first.
func rkRest(rkWords []any) []any {
	if _, rkIs := rkWords[0].(*rkT); rkIs {
		return rkWords[1:]
	}
	return rkWords
}

func rkSame(rkWords []any) bool { return rkreflect.DeepEqual(rkWords[0], rkWords[1]) }

func rkIsNil(rkValue any) bool {
	if rkValue == nil {
		return true
	}
	switch rkKind := rkreflect.ValueOf(rkValue); rkKind.Kind() {
	case rkreflect.Slice, rkreflect.Map, rkreflect.Pointer, rkreflect.Interface, rkreflect.Func, rkreflect.Chan:
		return rkKind.IsNil()
	}
	return false
}

func rkNumber(rkValue any) float64 {
	return rkreflect.ValueOf(rkValue).Convert(rkreflect.TypeOf(0.0)).Float()
}

func rkConverts(rkWords []any) bool {
	if rkSame(rkWords) {
		return true
	}
	rkWant, rkHas := rkreflect.ValueOf(rkWords[0]), rkreflect.ValueOf(rkWords[1])
	if !rkWant.IsValid() || !rkHas.IsValid() || !rkWant.CanConvert(rkHas.Type()) {
		return false
	}
	return rkreflect.DeepEqual(rkWant.Convert(rkHas.Type()).Interface(), rkHas.Interface())
}

func (rkAssert) Equal(rkWords ...any) bool {
	rkWords = rkRest(rkWords)
	return rkShown(rkSame(rkWords), rkWords...)
}
func (rkAssert) NotEqual(rkWords ...any) bool {
	rkWords = rkRest(rkWords)
	return rkShown(!rkSame(rkWords), rkWords...)
}
func (rkAssert) EqualValues(rkWords ...any) bool {
	rkWords = rkRest(rkWords)
	return rkShown(rkConverts(rkWords), rkWords...)
}
func (rkAssert) True(rkWords ...any) bool  { return rkShown(rkRest(rkWords)[0] == true, "true is expected") }
func (rkAssert) False(rkWords ...any) bool { return rkShown(rkRest(rkWords)[0] == false, "false is expected") }
func (rkAssert) Nil(rkWords ...any) bool   { return rkShown(rkIsNil(rkRest(rkWords)[0]), "nil is expected") }
func (rkAssert) NotNil(rkWords ...any) bool {
	return rkShown(!rkIsNil(rkRest(rkWords)[0]), "nil is not expected")
}
func (rkAssert) InDelta(rkWords ...any) bool {
	rkWords = rkRest(rkWords)
	rkGap := rkmath.Abs(rkNumber(rkWords[0]) - rkNumber(rkWords[1]))
	return rkShown(rkGap <= rkNumber(rkWords[2]), rkWords...)
}
func (rkAssert) Empty(rkWords ...any) bool {
	rkWords = rkRest(rkWords)
	return rkShown(rkIsEmpty(rkWords[0]), rkWords...)
}
func (rkAssert) NotEmpty(rkWords ...any) bool {
	rkWords = rkRest(rkWords)
	return rkShown(!rkIsEmpty(rkWords[0]), rkWords...)
}
func (rkAssert) Len(rkWords ...any) bool {
	rkWords = rkRest(rkWords)
	return rkShown(rkreflect.ValueOf(rkWords[0]).Len() == rkWords[1].(int), rkWords...)
}
func (rkAssert) NoError(rkWords ...any) bool { return rkShown(rkIsNil(rkRest(rkWords)[0]), rkRest(rkWords)...) }
func (rkAssert) Error(rkWords ...any) bool {
	return rkShown(!rkIsNil(rkRest(rkWords)[0]), "an error is expected")
}
func (rkAssert) ElementsMatch(rkWords ...any) bool {
	rkWords = rkRest(rkWords)
	rkWant, rkHas := rkSorted(rkWords[0]), rkSorted(rkWords[1])
	return rkShown(rkreflect.DeepEqual(rkWant, rkHas), rkWords...)
}
func (rkAssert) Contains(rkWords ...any) bool {
	rkWords = rkRest(rkWords)
	return rkShown(rkHolds(rkWords[0], rkWords[1]), rkWords...)
}
func (rkAssert) NotContains(rkWords ...any) bool {
	rkWords = rkRest(rkWords)
	return rkShown(!rkHolds(rkWords[0], rkWords[1]), rkWords...)
}

func rkIsEmpty(rkValue any) bool {
	if rkIsNil(rkValue) {
		return true
	}
	switch rkHeld := rkreflect.ValueOf(rkValue); rkHeld.Kind() {
	case rkreflect.Slice, rkreflect.Map, rkreflect.String, rkreflect.Array, rkreflect.Chan:
		return rkHeld.Len() == 0
	default:
		return rkHeld.IsZero()
	}
}

// rkSorted returns the items of a list as texts that have types, in an order of their own.
func rkSorted(rkList any) []string {
	rkTexts := []string{}
	for rkHeld, rkIndex := rkreflect.ValueOf(rkList), 0; rkHeld.IsValid() && rkIndex < rkHeld.Len(); rkIndex++ {
		rkText := rkfmt.Sprintf("%#v", rkHeld.Index(rkIndex).Interface())
		rkPlace := 0
		for rkPlace < len(rkTexts) && rkTexts[rkPlace] < rkText {
			rkPlace++
		}
		rkTexts = append(rkTexts[:rkPlace], append([]string{rkText}, rkTexts[rkPlace:]...)...)
	}
	return rkTexts
}

func rkHolds(rkWhole, rkPart any) bool {
	if rkText, rkIs := rkWhole.(string); rkIs {
		return rkstrings.Contains(rkText, rkfmt.Sprint(rkPart))
	}
	rkHeld := rkreflect.ValueOf(rkWhole)
	if rkHeld.Kind() == rkreflect.Map {
		return rkHeld.MapIndex(rkreflect.ValueOf(rkPart)).IsValid()
	}
	for rkIndex := 0; rkIndex < rkHeld.Len(); rkIndex++ {
		if rkreflect.DeepEqual(rkHeld.Index(rkIndex).Interface(), rkPart) {
			return true
		}
	}
	return false
}
