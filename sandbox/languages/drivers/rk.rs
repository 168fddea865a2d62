
// Values of Rust as lines of JSON, and calls of a function by its own types. The text follows that of a completion or
// of tests in the same file.
#[allow(dead_code, unused)]
mod rewardkit_driver {
    use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
    use std::fmt::Write as _;
    use std::fs::File;
    use std::hash::Hash;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::io::FromRawFd;
    use std::panic::{catch_unwind, AssertUnwindSafe};

    const MOST_BYTES: u64 = 8 << 20;
    const MOST_DEPTH: usize = 200;
    // How a tester ends where no answer can be used, so that it never goes on with a wrong value.
    const NO_ANSWER: i32 = 71;
    const NO_JSON: i32 = 72;
    const WRONG_TYPE: i32 = 73;
    const NO_READER: i32 = 75;
    const TESTS_AT_FAULT: i32 = 77;

    type Outcome<T> = Result<T, String>;

    fn end(status: i32) -> ! {
        std::process::exit(status)
    }

    // ---- JSON ----------------------------------------------------------------------------------------------------

    #[derive(Clone, Debug, PartialEq)]
    pub enum Value {
        Null,
        Truth(bool),
        Number(String),
        Text(String),
        List(Vec<Value>),
        Object(Vec<(String, Value)>),
    }

    impl Value {
        fn find(&self, key: &str) -> Option<&Value> {
            match self {
                Value::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
                _ => None,
            }
        }

        fn untagged(&self, tags: &[&str]) -> &Value {
            tags.iter().find_map(|tag| self.find(tag)).unwrap_or(self)
        }

        fn items(&self) -> Outcome<&[Value]> {
            match self.untagged(&["$s", "$m", "$o"]) {
                Value::List(items) => Ok(items),
                _ => Err("an argument is no list".into()),
            }
        }
    }

    struct Reader<'a> {
        bytes: &'a [u8],
        next: usize,
    }

    pub fn parse(line: &str) -> Outcome<Value> {
        let mut reader = Reader { bytes: line.as_bytes(), next: 0 };
        let value = reader.read(0)?;
        reader.skip_blanks();
        if reader.next == reader.bytes.len() { Ok(value) } else { Err("more than JSON".into()) }
    }

    impl Reader<'_> {
        fn read(&mut self, depth: usize) -> Outcome<Value> {
            if depth > MOST_DEPTH {
                return Err("nested too deep".into());
            }
            match self.peek()? {
                b'"' => Ok(Value::Text(self.text()?)),
                b'[' => self.list(depth),
                b'{' => self.object(depth),
                b't' => self.word("true", Value::Truth(true)),
                b'f' => self.word("false", Value::Truth(false)),
                b'n' => self.word("null", Value::Null),
                _ => self.number(),
            }
        }

        fn list(&mut self, depth: usize) -> Outcome<Value> {
            let mut items = Vec::new();
            self.next += 1;
            if self.closes(b']')? {
                return Ok(Value::List(items));
            }
            loop {
                items.push(self.read(depth + 1)?);
                if !self.goes_on(b']')? {
                    return Ok(Value::List(items));
                }
            }
        }

        fn object(&mut self, depth: usize) -> Outcome<Value> {
            let mut members = Vec::new();
            self.next += 1;
            if self.closes(b'}')? {
                return Ok(Value::Object(members));
            }
            loop {
                if self.peek()? != b'"' {
                    return Err("not JSON".into());
                }
                let key = self.text()?;
                if self.peek()? != b':' {
                    return Err("not JSON".into());
                }
                self.next += 1;
                members.push((key, self.read(depth + 1)?));
                if !self.goes_on(b'}')? {
                    return Ok(Value::Object(members));
                }
            }
        }

        fn number(&mut self) -> Outcome<Value> {
            let start = self.next;
            while self.next < self.bytes.len() && b"+-0123456789.eE".contains(&self.bytes[self.next]) {
                self.next += 1;
            }
            if start == self.next {
                return Err("not JSON".into());
            }
            Ok(Value::Number(String::from_utf8_lossy(&self.bytes[start..self.next]).into_owned()))
        }

        fn text(&mut self) -> Outcome<String> {
            self.next += 1;
            let mut bytes = Vec::new();
            loop {
                match self.take()? {
                    b'"' => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                    b'\\' => {
                        let letter = self.escaped()?;
                        bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                    byte => bytes.push(byte),
                }
            }
        }

        fn escaped(&mut self) -> Outcome<char> {
            match self.take()? {
                b'n' => Ok('\n'),
                b't' => Ok('\t'),
                b'r' => Ok('\r'),
                b'b' => Ok('\u{8}'),
                b'f' => Ok('\u{c}'),
                b'u' => self.code_point(),
                byte if b"\"\\/".contains(&byte) => Ok(byte as char),
                _ => Err("not JSON".into()),
            }
        }

        fn code_point(&mut self) -> Outcome<char> {
            let high = self.unit()?;
            let goes_on = self.bytes[self.next..].starts_with(b"\\u");
            if !(0xD800..0xDC00).contains(&high) || !goes_on {
                return Ok(char::from_u32(high).unwrap_or('\u{fffd}'));
            }
            self.next += 2;
            let low = self.unit()?.wrapping_sub(0xDC00);
            Ok(char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low & 0x3FF)).unwrap_or('\u{fffd}'))
        }

        fn unit(&mut self) -> Outcome<u32> {
            let mut unit = 0;
            for _ in 0..4 {
                let digit = (self.take()? as char).to_digit(16).ok_or("not JSON")?;
                unit = unit * 16 + digit;
            }
            Ok(unit)
        }

        fn word(&mut self, letters: &str, value: Value) -> Outcome<Value> {
            if !self.bytes[self.next..].starts_with(letters.as_bytes()) {
                return Err("not JSON".into());
            }
            self.next += letters.len();
            Ok(value)
        }

        fn closes(&mut self, bracket: u8) -> Outcome<bool> {
            let closes = self.peek()? == bracket;
            self.next += closes as usize;
            Ok(closes)
        }

        fn goes_on(&mut self, bracket: u8) -> Outcome<bool> {
            let byte = self.peek()?;
            self.next += 1;
            if byte == b',' || byte == bracket { Ok(byte == b',') } else { Err("not JSON".into()) }
        }

        fn take(&mut self) -> Outcome<u8> {
            self.next += 1;
            self.bytes.get(self.next - 1).copied().ok_or_else(|| "not JSON".into())
        }

        fn peek(&mut self) -> Outcome<u8> {
            self.skip_blanks();
            self.bytes.get(self.next).copied().ok_or_else(|| "not JSON".into())
        }

        fn skip_blanks(&mut self) {
            while self.next < self.bytes.len() && b" \t\r\n".contains(&self.bytes[self.next]) {
                self.next += 1;
            }
        }
    }

    pub fn write_text(line: &mut String, text: &str) {
        line.push('"');
        for letter in text.chars() {
            match letter {
                '"' | '\\' => line.extend(['\\', letter]),
                letter if (letter as u32) < 32 => write!(line, "\\u{:04x}", letter as u32).unwrap(),
                letter => line.push(letter),
            }
        }
        line.push('"');
    }

    // ---- one codec for each type ---------------------------------------------------------------------------------

    pub trait Encode {
        fn write(&self, line: &mut String);
    }

    pub trait Decode: Sized {
        fn read(value: &Value) -> Outcome<Self>;

        /// Reads the key of a mapping: those of JSON's objects are texts, also where a number is meant.
        fn read_key(value: &Value) -> Outcome<Self> {
            Self::read(value)
        }
    }

    fn number_of_key(value: &Value) -> Value {
        match value {
            Value::Text(digits) => Value::Number(digits.clone()),
            _ => value.clone(),
        }
    }

    macro_rules! integers {
        ($($kind:ty)*) => {$(
            impl Encode for $kind {
                fn write(&self, line: &mut String) {
                    if *self as i128 >= i64::MIN as i128 && *self as i128 <= i64::MAX as i128 {
                        write!(line, "{}", self).unwrap();
                    } else {
                        write!(line, "{{\"$i\":\"{}\"}}", self).unwrap();
                    }
                }
            }
            impl Decode for $kind {
                fn read(value: &Value) -> Outcome<Self> {
                    let refusal = concat!("an argument is no ", stringify!($kind));
                    match (value.find("$i"), value) {
                        (Some(Value::Text(digits)), _) => digits.parse().map_err(|_| refusal.into()),
                        (_, Value::Number(digits)) => match digits.parse::<$kind>() {
                            Ok(whole) => Ok(whole),
                            Err(_) => { // 3.0 and 1e3 are whole
                                let float: f64 = digits.parse().map_err(|_| refusal.to_string())?;
                                let is_small = digits.contains(['.', 'e', 'E']) && float.abs() < 9e15;
                                if is_small && float as $kind as f64 == float { Ok(float as $kind) } else { Err(refusal.into()) }
                            }
                        },
                        _ => Err(refusal.into()),
                    }
                }
                fn read_key(value: &Value) -> Outcome<Self> {
                    Self::read(&number_of_key(value))
                }
            }
        )*};
    }
    integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

    macro_rules! floats {
        ($($kind:ty)*) => {$(
            impl Encode for $kind {
                fn write(&self, line: &mut String) {
                    if self.is_nan() {
                        line.push_str("{\"$f\":\"NaN\"}");
                    } else if self.is_infinite() {
                        line.push_str(if *self > 0.0 { "{\"$f\":\"Infinity\"}" } else { "{\"$f\":\"-Infinity\"}" });
                    } else {
                        write!(line, "{:?}", self).unwrap(); // has always a point or an exponent
                    }
                }
            }
            impl Decode for $kind {
                fn read(value: &Value) -> Outcome<Self> {
                    let digits = match (value.find("$f"), value.find("$i"), value) {
                        (Some(Value::Text(name)), _, _) | (_, Some(Value::Text(name)), _) => name,
                        (_, _, Value::Number(digits)) => digits,
                        _ => return Err(concat!("an argument is no ", stringify!($kind)).into()),
                    };
                    digits.parse().map_err(|_| "an argument is no number".into())
                }
                fn read_key(value: &Value) -> Outcome<Self> {
                    Self::read(&number_of_key(value))
                }
            }
        )*};
    }
    floats!(f32 f64);

    impl Encode for bool {
        fn write(&self, line: &mut String) {
            line.push_str(if *self { "true" } else { "false" });
        }
    }
    impl Decode for bool {
        fn read(value: &Value) -> Outcome<Self> {
            if let Value::Truth(truth) = value { Ok(*truth) } else { Err("an argument is no bool".into()) }
        }
    }
    impl Encode for char {
        fn write(&self, line: &mut String) {
            write_text(line, self.encode_utf8(&mut [0; 4]));
        }
    }
    impl Decode for char {
        fn read(value: &Value) -> Outcome<Self> {
            let text = String::read(value)?;
            let mut letters = text.chars();
            match (letters.next(), letters.next()) {
                (Some(letter), None) => Ok(letter),
                _ => Err("an argument is no char".into()),
            }
        }
    }
    impl Encode for str {
        fn write(&self, line: &mut String) {
            write_text(line, self);
        }
    }
    impl Decode for &'static str {
        fn read(value: &Value) -> Outcome<Self> {
            String::read(value).map(|text| &*Box::leak(text.into_boxed_str())) // a call's arguments outlive it
        }
    }
    impl Encode for String {
        fn write(&self, line: &mut String) {
            write_text(line, self);
        }
    }
    impl Decode for String {
        fn read(value: &Value) -> Outcome<Self> {
            if let Value::Text(text) = value { Ok(text.clone()) } else { Err("an argument is no text".into()) }
        }
    }
    impl Encode for () {
        fn write(&self, line: &mut String) {
            line.push_str("null");
        }
    }
    impl Decode for () {
        fn read(_: &Value) -> Outcome<Self> {
            Ok(())
        }
    }
    impl<T: Encode + ?Sized> Encode for &T {
        fn write(&self, line: &mut String) {
            (**self).write(line);
        }
    }
    impl<T: Encode + ?Sized> Encode for &mut T {
        fn write(&self, line: &mut String) {
            (**self).write(line);
        }
    }
    impl<T: Encode + ?Sized> Encode for Box<T> {
        fn write(&self, line: &mut String) {
            (**self).write(line);
        }
    }
    impl<T: Decode> Decode for Box<T> {
        fn read(value: &Value) -> Outcome<Self> {
            T::read(value).map(Box::new)
        }
    }
    impl<T: Encode> Encode for Option<T> {
        fn write(&self, line: &mut String) {
            match self {
                Some(value) => value.write(line),
                None => line.push_str("null"),
            }
        }
    }
    impl<T: Decode> Decode for Option<T> {
        fn read(value: &Value) -> Outcome<Self> {
            if *value == Value::Null { Ok(None) } else { T::read(value).map(Some) }
        }
    }
    // An Err is what a call raises, see Answer; inside of a value it has a form of its own between two programs of Rust.
    impl<T: Encode, E: Encode> Encode for Result<T, E> {
        fn write(&self, line: &mut String) {
            match self {
                Ok(value) => value.write(line),
                Err(fault) => {
                    line.push_str("{\"$err\":");
                    fault.write(line);
                    line.push('}');
                }
            }
        }
    }
    impl<T: Decode, E: Decode> Decode for Result<T, E> {
        fn read(value: &Value) -> Outcome<Self> {
            match value.find("$err") {
                Some(fault) => E::read(fault).map(Err),
                None => T::read(value).map(Ok),
            }
        }
    }

    fn write_items<T: Encode>(line: &mut String, items: impl Iterator<Item = T>) {
        line.push('[');
        for (index, item) in items.enumerate() {
            if index > 0 {
                line.push(',');
            }
            item.write(line);
        }
        line.push(']');
    }

    impl<T: Encode> Encode for [T] {
        fn write(&self, line: &mut String) {
            write_items(line, self.iter());
        }
    }
    impl<T: Encode, const N: usize> Encode for [T; N] {
        fn write(&self, line: &mut String) {
            write_items(line, self.iter());
        }
    }
    impl<T: Decode, const N: usize> Decode for [T; N] {
        fn read(value: &Value) -> Outcome<Self> {
            Vec::<T>::read(value)?.try_into().map_err(|_| "an argument is no array of its length".into())
        }
    }

    macro_rules! collections {
        ($open:literal, $close:literal, $($kind:ident [$($bound:path),*])*) => {$(
            impl<T: Encode> Encode for $kind<T> {
                fn write(&self, line: &mut String) {
                    line.push_str($open);
                    write_items(line, self.iter());
                    line.push_str($close);
                }
            }
            impl<T: Decode $(+ $bound)*> Decode for $kind<T> {
                fn read(value: &Value) -> Outcome<Self> {
                    value.items()?.iter().map(T::read).collect()
                }
            }
        )*};
    }
    collections!("", "", Vec[] VecDeque[] LinkedList[] BinaryHeap[Ord]);
    collections!("{\"$s\":", "}", HashSet[Eq, Hash] BTreeSet[Ord]);

    macro_rules! mappings {
        ($($kind:ident [$($bound:path),*])*) => {$(
            impl<K: Encode, V: Encode> Encode for $kind<K, V> {
                fn write(&self, line: &mut String) {
                    line.push_str("{\"$m\":");
                    write_items(line, self.iter());
                    line.push('}');
                }
            }
            impl<K: Decode $(+ $bound)*, V: Decode> Decode for $kind<K, V> {
                fn read(value: &Value) -> Outcome<Self> {
                    value.items()?.iter().map(|pair| match pair.items()? {
                        [key, mapped] => Ok((K::read_key(key)?, V::read(mapped)?)),
                        _ => Err("an argument is no mapping".into()),
                    }).collect()
                }
            }
        )*};
    }
    mappings!(HashMap[Eq, Hash] BTreeMap[Ord]);

    macro_rules! tuples {
        ($(($count:literal $($name:ident $index:tt)+))*) => {$(
            impl<$($name: Encode),+> Encode for ($($name,)+) {
                fn write(&self, line: &mut String) {
                    line.push('[');
                    $(
                        if $index > 0 { line.push(','); }
                        self.$index.write(line);
                    )+
                    line.push(']');
                }
            }
            impl<$($name: Decode),+> Decode for ($($name,)+) {
                fn read(value: &Value) -> Outcome<Self> {
                    let items = value.items()?;
                    if items.len() != $count {
                        return Err("an argument is no tuple of its length".into());
                    }
                    Ok(($($name::read(&items[$index])?,)+))
                }
            }
        )*};
    }
    tuples!((1 A 0) (2 A 0 B 1) (3 A 0 B 1 C 2) (4 A 0 B 1 C 2 D 3) (5 A 0 B 1 C 2 D 3 E 4) (6 A 0 B 1 C 2 D 3 E 4 F 5)
        (7 A 0 B 1 C 2 D 3 E 4 F 5 G 6) (8 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7));

    // ---- lines ---------------------------------------------------------------------------------------------------

    pub struct Lines {
        input: BufReader<File>,
        output: File,
    }

    impl Lines {
        pub fn open(input: i32, output: i32) -> Lines {
            // Nothing else here owns the two descriptors.
            unsafe { Lines { input: BufReader::new(File::from_raw_fd(input)), output: File::from_raw_fd(output) } }
        }

        fn next(&mut self) -> Option<String> {
            let mut bytes = Vec::new();
            let count = (&mut self.input).take(MOST_BYTES).read_until(b'\n', &mut bytes).ok()?;
            if count == 0 || bytes.last() != Some(&b'\n') {
                return None;
            }
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }

        fn put(&mut self, mut line: String) {
            line.push('\n');
            if self.output.write_all(line.as_bytes()).is_err() {
                end(NO_READER);
            }
        }
    }

    // ---- the answerer --------------------------------------------------------------------------------------------

    /// A stored argument, and whether the function may change it.
    pub struct Held<T> {
        stored: T,
        changes: bool,
    }

    impl<T: Decode + Encode> Held<T> {
        pub fn read(arguments: &[Value], index: usize) -> Outcome<Held<T>> {
            let value = arguments.get(index).ok_or("the function takes another number of arguments")?;
            Ok(Held { stored: T::read(value)?, changes: false })
        }

        pub fn note(&self, index: usize, changed: &mut Vec<(usize, String)>) {
            if self.changes {
                changed.push((index, encoded(&self.stored)));
            }
        }
    }

    /// How an argument is stored and passed: `&[T]` is stored as a `Vec<T>`.
    pub trait Parameter<'a> {
        type Stored: 'a;
        fn pass(held: &'a mut Held<Self::Stored>) -> Self;
    }

    macro_rules! by_value {
        ($([$($generic:tt)*] $kind:ty;)*) => {$(
            impl<'a, $($generic)*> Parameter<'a> for $kind where $kind: Default + 'a {
                type Stored = $kind;
                fn pass(held: &'a mut Held<$kind>) -> $kind {
                    std::mem::take(&mut held.stored)
                }
            }
        )*};
    }
    by_value!([] i8; [] i16; [] i32; [] i64; [] i128; [] isize; [] u8; [] u16; [] u32; [] u64; [] u128; [] usize;
        [] f32; [] f64; [] bool; [] char; [] String; [T] Vec<T>; [T] VecDeque<T>; [T] LinkedList<T>; [T] HashSet<T>;
        [T] BTreeSet<T>; [K, V] HashMap<K, V>; [K, V] BTreeMap<K, V>; [T] Option<T>; [A, B] (A, B); [A, B, C] (A, B, C);
        [A, B, C, D] (A, B, C, D); [T: Ord] BinaryHeap<T>; [T] Box<T>;);

    impl<'a, T: Clone + 'a, const N: usize> Parameter<'a> for [T; N] {
        type Stored = [T; N];
        fn pass(held: &'a mut Held<[T; N]>) -> [T; N] {
            held.stored.clone()
        }
    }
    impl<'a> Parameter<'a> for &'a str {
        type Stored = String;
        fn pass(held: &'a mut Held<String>) -> &'a str {
            &held.stored
        }
    }
    impl<'a, T> Parameter<'a> for &'a [T] {
        type Stored = Vec<T>;
        fn pass(held: &'a mut Held<Vec<T>>) -> &'a [T] {
            &held.stored
        }
    }
    impl<'a, T> Parameter<'a> for &'a mut [T] {
        type Stored = Vec<T>;
        fn pass(held: &'a mut Held<Vec<T>>) -> &'a mut [T] {
            held.changes = true;
            &mut held.stored
        }
    }
    impl<'a, T> Parameter<'a> for &'a T {
        type Stored = T;
        fn pass(held: &'a mut Held<T>) -> &'a T {
            &held.stored
        }
    }
    impl<'a, T> Parameter<'a> for &'a mut T {
        type Stored = T;
        fn pass(held: &'a mut Held<T>) -> &'a mut T {
            held.changes = true;
            &mut held.stored
        }
    }

    fn encoded<T: Encode + ?Sized>(value: &T) -> String {
        let mut line = String::new();
        value.write(&mut line);
        line
    }

    /// Returns an answer; `tester` says whether the arguments that the call changes are asked for.
    pub fn finish(result: String, changed: Vec<(usize, String)>, tester: bool) -> String {
        if tester {
            let pairs: Vec<String> = changed.iter().map(|(index, text)| format!("[{},{}]", index, text)).collect();
            return format!("{{\"v\":{},\"a\":[{}]}}", result, pairs.join(","));
        }
        if result.starts_with("{\"$err\":") {
            return format!("{{\"e\":{}}}", encoded(result.as_str()));
        }
        match (result.as_str(), changed.first()) {
            ("null", Some((_, text))) => format!("{{\"v\":{}}}", text), // without a result, what it changed is one
            _ => format!("{{\"v\":{}}}", result),
        }
    }

    pub fn serve(answer: impl Fn(&[Value], bool) -> Outcome<String>) {
        let mut lines = Lines::open(3, 4);
        std::panic::set_hook(Box::new(|_| ()));
        while let Some(line) = lines.next() {
            let request = match parse(&line) {
                Ok(request) => request,
                Err(_) => return,
            };
            let tester = request.find("a").is_some();
            let result = request.untagged(&["a"]).items().and_then(|arguments| {
                catch_unwind(AssertUnwindSafe(|| answer(arguments, tester))).unwrap_or_else(|fault| Err(reason(&*fault)))
            });
            lines.put(result.unwrap_or_else(|fault| format!("{{\"e\":{}}}", encoded(fault.as_str()))));
        }
    }

    fn reason(fault: &(dyn std::any::Any + Send)) -> String {
        let text = fault.downcast_ref::<String>().cloned();
        text.or_else(|| fault.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_else(|| "it panicked".into())
    }

    pub fn result<T: Encode>(value: T) -> String {
        encoded(&value)
    }

    // ---- the tester's stub ---------------------------------------------------------------------------------------

    use std::sync::Mutex;
    static ASKING: Mutex<Option<(Lines, u64)>> = Mutex::new(None);

    /// Calls the answerer with arguments as JSON; returns the result, and what was changed by index.
    pub fn ask<R: Decode>(arguments: &[String]) -> (R, Vec<(usize, Value)>) {
        let mut asking = ASKING.lock().unwrap_or_else(|fault| fault.into_inner());
        let (lines, calls) = asking.get_or_insert_with(|| (Lines::open(4, 3), 0));
        *calls += 1;
        lines.put(format!("{{\"a\":[{}]}}", arguments.join(",")));
        let line = lines.next().unwrap_or_else(|| end(NO_ANSWER));
        let reply = parse(&line).unwrap_or_else(|_| end(NO_JSON));
        if let Some(fault) = reply.find("e") {
            let text = format!("the function panicked: {:?}", fault);
            drop(asking);
            panic!("{}", text);
        }
        let value = reply.find("v").unwrap_or_else(|| end(NO_JSON));
        let result = R::read(value).unwrap_or_else(|_| end(WRONG_TYPE));
        let changed = reply.find("a").map(|list| Vec::read_pairs(list)).unwrap_or_default();
        (result, changed)
    }

    trait ReadPairs {
        fn read_pairs(list: &Value) -> Vec<(usize, Value)>;
    }
    impl ReadPairs for Vec<(usize, Value)> {
        fn read_pairs(list: &Value) -> Vec<(usize, Value)> {
            <Vec<(usize, Value)>>::read(list).unwrap_or_else(|_| end(WRONG_TYPE))
        }
    }
    impl Decode for Value {
        fn read(value: &Value) -> Outcome<Self> {
            Ok(value.clone())
        }
    }

    pub fn argument<T: Encode + ?Sized>(value: &T) -> String {
        encoded(value)
    }

    /// Puts what the call changed into an argument.
    pub fn write_back<T: Decode>(changed: &[(usize, Value)], index: usize, into: &mut T) {
        for (_, value) in changed.iter().filter(|(place, _)| *place == index) {
            *into = T::read(value).unwrap_or_else(|_| end(WRONG_TYPE));
        }
    }
    pub fn write_back_slice<T: Decode>(changed: &[(usize, Value)], index: usize, into: &mut [T]) {
        for (_, value) in changed.iter().filter(|(place, _)| *place == index) {
            let items = Vec::<T>::read(value).unwrap_or_else(|_| end(WRONG_TYPE));
            if items.len() != into.len() {
                end(WRONG_TYPE);
            }
            for (place, item) in into.iter_mut().zip(items) {
                *place = item;
            }
        }
    }

    /// Ends tests that ended well; an end without a call shows nothing.
    pub fn finish_tests() {
        let asking = ASKING.lock().unwrap_or_else(|fault| fault.into_inner());
        if asking.as_ref().map_or(0, |(_, calls)| *calls) == 0 {
            end(TESTS_AT_FAULT);
        }
    }
}
