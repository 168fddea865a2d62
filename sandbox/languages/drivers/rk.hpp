// Values of C++ as lines of JSON, and calls of a function by its own types.
//
// serve(&f) answers calls: it reads them from descriptor 3 and writes answers to 4.
// The file comes after the text of a completion, whose macros are undefined before it. It includes few headers, and
// none that puts common names into the global namespace, such as unistd.h with its read and link: a completion may
// have these for its own. All names are in one namespace.
#ifndef REWARDKIT_DRIVER
#define REWARDKIT_DRIVER

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace rewardkit_driver {

constexpr std::size_t most_bytes = 8u << 20;
constexpr int most_depth = 200;

// How a tester ends where no answer can be used, so that it never goes on with a wrong value.
enum Ending { no_answer = 71, no_json = 72, wrong_type = 73, too_long = 74, no_reader = 75, tests_at_fault = 77 };

[[noreturn]] inline void end(Ending ending) { std::_Exit(ending); }

struct Mismatch : std::runtime_error {
    Mismatch(const char* type) : std::runtime_error(std::string("an argument is no ") + type) {}
};

// ---- JSON ----------------------------------------------------------------------------------------------------------

enum class Kind { null, truth, number, text, list, object };

struct Value {
    Kind kind = Kind::null;
    bool truth = false;
    std::string text;                  // of a text, and of a number as it is written
    std::vector<Value> items;          // of a list; of an object its values
    std::vector<std::string> keys;     // of an object

    const Value* find(const char* key) const {
        for (std::size_t i = 0; i < keys.size(); i++)
            if (keys[i] == key) return &items[i];
        return nullptr;
    }
};

struct NotJson {};

class Reader {
public:
    explicit Reader(const std::string& line) : next_(line.data()), end_(line.data() + line.size()) {}

    Value whole() {
        Value value = read(0);
        skip_blanks();
        if (next_ != end_) throw NotJson();
        return value;
    }

private:
    const char* next_;
    const char* end_;

    Value read(int depth) {
        if (depth > most_depth) throw NotJson();
        Value value;
        switch (peek()) {
            case '"': value.kind = Kind::text; value.text = text(); break;
            case '[': value.kind = Kind::list; list(value, depth); break;
            case '{': value.kind = Kind::object; object(value, depth); break;
            case 't': value.kind = Kind::truth; value.truth = true; word("true"); break;
            case 'f': value.kind = Kind::truth; word("false"); break;
            case 'n': word("null"); break;
            default: value.kind = Kind::number; value.text = number();
        }
        return value;
    }

    void list(Value& value, int depth) {
        ++next_;
        if (closes(']')) return;
        do value.items.push_back(read(depth + 1));
        while (goes_on(']'));
    }

    void object(Value& value, int depth) {
        ++next_;
        if (closes('}')) return;
        do {
            if (peek() != '"') throw NotJson();
            value.keys.push_back(text());
            if (peek() != ':') throw NotJson();
            ++next_;
            value.items.push_back(read(depth + 1));
        } while (goes_on('}'));
    }

    std::string number() {
        const char* start = next_;
        while (next_ < end_ && is_of_number(*next_)) ++next_;
        if (start == next_ || next_ - start > 5000) throw NotJson();
        return std::string(start, next_);
    }

    static bool is_of_number(char c) {
        return ('0' <= c && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
    }

    std::string text() {
        ++next_;
        std::string result;
        for (;;) {
            char c = take();
            if (c == '"') return result;
            if (c == '\\') escaped(result);
            else result += c;
        }
    }

    void escaped(std::string& result) {
        switch (char c = take()) {
            case 'n': result += '\n'; break;
            case 't': result += '\t'; break;
            case 'r': result += '\r'; break;
            case 'b': result += '\b'; break;
            case 'f': result += '\f'; break;
            case '"': case '\\': case '/': result += c; break;
            case 'u': append_utf8(result, code_point()); break;
            default: throw NotJson();
        }
    }

    unsigned long code_point() {
        unsigned long high = code_unit();
        if (high < 0xD800 || high > 0xDBFF || end_ - next_ < 6 || next_[0] != '\\' || next_[1] != 'u') return high;
        const char* before = next_;
        next_ += 2;
        unsigned long low = code_unit();
        if (0xDC00 <= low && low <= 0xDFFF) return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        next_ = before;
        return high;
    }

    unsigned long code_unit() {
        unsigned long unit = 0;
        for (int i = 0; i < 4; i++) {
            char c = take();
            if ('0' <= c && c <= '9') unit = unit * 16 + (c - '0');
            else if ('a' <= (c | 32) && (c | 32) <= 'f') unit = unit * 16 + ((c | 32) - 'a' + 10);
            else throw NotJson();
        }
        return unit;
    }

    static void append_utf8(std::string& result, unsigned long code) {
        if (code < 0x80) { result += char(code); return; }
        if (code < 0x800) result += char(0xC0 | code >> 6);
        else {
            if (code < 0x10000) result += char(0xE0 | code >> 12);
            else { result += char(0xF0 | code >> 18); result += char(0x80 | (code >> 12 & 63)); }
            result += char(0x80 | (code >> 6 & 63));
        }
        result += char(0x80 | (code & 63));
    }

    void word(const char* letters) {
        for (; *letters; ++letters)
            if (take() != *letters) throw NotJson();
    }

    bool closes(char bracket) {
        if (peek() != bracket) return false;
        ++next_;
        return true;
    }

    bool goes_on(char bracket) {
        char c = peek();
        ++next_;
        if (c != ',' && c != bracket) throw NotJson();
        return c == ',';
    }

    char take() {
        if (next_ == end_) throw NotJson();
        return *next_++;
    }

    char peek() {
        skip_blanks();
        if (next_ == end_) throw NotJson();
        return *next_;
    }

    void skip_blanks() {
        while (next_ < end_ && (*next_ == ' ' || *next_ == '\t' || *next_ == '\r' || *next_ == '\n')) ++next_;
    }
};

inline void write_text(std::string& line, const char* text, std::size_t size) {
    line += '"';
    for (std::size_t i = 0; i < size; i++) {
        unsigned char c = text[i];
        if (c == '"' || c == '\\') line += '\\';
        if (c >= 32) line += char(c);
        else { line += "\\u00"; line += "01"[c >> 4]; line += "0123456789abcdef"[c & 15]; }
    }
    line += '"';
}

// ---- one codec for each type ---------------------------------------------------------------------------------------

template <class T, class = void> struct Codec {
    static_assert(sizeof(T) == 0, "values of this type cannot be sent to another program");
};

template <class T> using Bare = std::remove_cv_t<std::remove_reference_t<T>>;

inline const Value& tagged(const Value& value, const char* tag) {
    const Value* content = value.kind == Kind::object && value.keys.size() == 1 ? value.find(tag) : nullptr;
    return content ? *content : value;
}

template <class T> constexpr bool is_integer =
    std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>;

template <class T> struct Codec<T, std::enable_if_t<is_integer<T>>> {
    static T read(const Value& value) {
        const Value& number = tagged(value, "$i");
        const char* end = number.text.data() + number.text.size();
        T result{};
        auto [rest, fault] = std::from_chars(number.text.data(), end, result);
        if (value.kind != Kind::number && &number == &value) throw Mismatch("integer");
        if (fault == std::errc() && rest == end) return result;
        return from_float(number);
    }
    static T from_float(const Value& number) {  // 3.0 and 1e3 are whole
        double whole = std::strtod(number.text.c_str(), nullptr);
        if (number.kind != Kind::number || !(-9.0e15 < whole && whole < 9.0e15) ||
            double(static_cast<long long>(whole)) != whole || whole < double(std::numeric_limits<T>::min()) || whole > double(std::numeric_limits<T>::max()))
            throw Mismatch("integer of the function's type");
        return T(whole);
    }
    static void write(std::string& line, T value) { line += std::to_string(value); }
};

template <class T> struct Codec<T, std::enable_if_t<std::is_floating_point_v<T>>> {
    static T read(const Value& value) {
        const Value& name = tagged(value, "$f");
        if (&name != &value) return special(name.text);
        const Value& number = tagged(value, "$i");
        if (value.kind != Kind::number && &number == &value) throw Mismatch("number");
        T result{};
        const char* end = number.text.data() + number.text.size();
        if (std::from_chars(number.text.data(), end, result).ec == std::errc()) return result;
        return T(std::strtod(number.text.c_str(), nullptr));  // beyond the type's range
    }
    static T special(const std::string& name) {
        if (name == "NaN") return std::numeric_limits<T>::quiet_NaN();
        return name == "-Infinity" ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
    }
    static void write(std::string& line, T value) {
        if (value != value) { line += "{\"$f\":\"NaN\"}"; return; }
        if (value - value != 0) { line += value < 0 ? "{\"$f\":\"-Infinity\"}" : "{\"$f\":\"Infinity\"}"; return; }
        char digits[128];
        std::string text(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
        line += text;
        if (text.find_first_of(".e") == std::string::npos) line += ".0";
    }
};

template <> struct Codec<bool> {
    static bool read(const Value& value) {
        if (value.kind != Kind::truth) throw Mismatch("bool");
        return value.truth;
    }
    static void write(std::string& line, bool value) { line += value ? "true" : "false"; }
};

template <> struct Codec<char> {
    static char read(const Value& value) {
        if (value.kind != Kind::text || value.text.size() != 1) throw Mismatch("char");
        return value.text[0];
    }
    static void write(std::string& line, char value) { write_text(line, &value, 1); }
};

template <class Text> struct TextCodec {
    static std::string read(const Value& value) {
        if (value.kind != Kind::text) throw Mismatch("text");
        return value.text;
    }
    static void write(std::string& line, const Text& text) { write_text(line, text.data(), text.size()); }
};
template <> struct Codec<std::string> : TextCodec<std::string> {};
template <> struct Codec<std::string_view> : TextCodec<std::string_view> {};
template <> struct Codec<const char*> {
    static void write(std::string& line, const char* text) { write_text(line, text, std::char_traits<char>::length(text)); }
};
template <std::size_t N> struct Codec<char[N]> {
    static void write(std::string& line, const char* text) { Codec<const char*>::write(line, text); }
};

inline const std::vector<Value>& items_of(const Value& value, const char* tag = "$s") {
    const Value& list = tagged(value, tag);
    if (list.kind != Kind::list) throw Mismatch("list");
    return list.items;
}

template <class Items> void write_items(std::string& line, const Items& items) {
    line += '[';
    bool first = true;
    for (auto&& item : items) {
        if (!first) line += ',';
        first = false;
        Codec<Bare<typename Items::value_type>>::write(line, item);
    }
    line += ']';
}

template <class List> struct ListCodec {
    static List read(const Value& value) {
        List list;
        for (const Value& item : items_of(value)) list.insert(list.end(), Codec<typename List::value_type>::read(item));
        return list;
    }
    static void write(std::string& line, const List& list) { write_items(line, list); }
};

template <class Set> struct SetCodec : ListCodec<Set> {
    static void write(std::string& line, const Set& set) {
        line += "{\"$s\":";
        write_items(line, set);
        line += '}';
    }
};

template <class Map> struct MapCodec {
    using Key = typename Map::key_type;
    using Mapped = typename Map::mapped_type;
    static Map read(const Value& value) {
        const Value* pairs = &tagged(value, "$m");
        if (pairs == &value) pairs = &tagged(value, "$o");
        Map map;
        for (const Value& pair : items_of(*pairs)) {
            if (pair.items.size() != 2) throw Mismatch("mapping");
            map.emplace(key(pair.items[0]), Codec<Mapped>::read(pair.items[1]));
        }
        return map;
    }
    static Key key(const Value& value) {  // the keys of JSON's objects are texts
        if constexpr (is_integer<Key> || std::is_floating_point_v<Key>) {
            Value number = value;
            if (value.kind == Kind::text) number.kind = Kind::number;
            return Codec<Key>::read(number);
        } else {
            return Codec<Key>::read(value);
        }
    }
    static void write(std::string& line, const Map& map) {
        line += "{\"$m\":[";
        bool first = true;
        for (const auto& [key, mapped] : map) {
            line += first ? "[" : ",[";
            first = false;
            Codec<Key>::write(line, key);
            line += ',';
            Codec<Mapped>::write(line, mapped);
            line += ']';
        }
        line += "]}";
    }
};

template <class Tuple> struct TupleCodec {
    static constexpr std::size_t size = std::tuple_size_v<Tuple>;
    using Indices = std::make_index_sequence<size>;
    static Tuple read(const Value& value) { return read(items_of(value), Indices()); }
    static void write(std::string& line, const Tuple& tuple) { write(line, tuple, Indices()); }

private:
    template <std::size_t... I> static Tuple read(const std::vector<Value>& items, std::index_sequence<I...>) {
        if (items.size() != size) throw Mismatch("tuple of its length");
        return Tuple{Codec<Bare<std::tuple_element_t<I, Tuple>>>::read(items[I])...};
    }
    template <std::size_t... I> static void write(std::string& line, const Tuple& tuple, std::index_sequence<I...>) {
        line += '[';
        ((line += I ? "," : "", Codec<Bare<std::tuple_element_t<I, Tuple>>>::write(line, std::get<I>(tuple))), ...);
        line += ']';
    }
};

template <class T, class A> struct Codec<std::vector<T, A>> : ListCodec<std::vector<T, A>> {};
template <class A, class B> struct Codec<std::pair<A, B>> : TupleCodec<std::pair<A, B>> {};
template <class... T> struct Codec<std::tuple<T...>> : TupleCodec<std::tuple<T...>> {};

// A header's own guard says whether the completion includes it: types that it cannot name need no codec.
#if defined(_GLIBCXX_ARRAY) || !defined(__GLIBCXX__)
#include <array>
template <class T, std::size_t N> struct Codec<std::array<T, N>> : TupleCodec<std::array<T, N>> {};
#endif
#if defined(_GLIBCXX_LIST) || !defined(__GLIBCXX__)
#include <list>
template <class T, class A> struct Codec<std::list<T, A>> : ListCodec<std::list<T, A>> {};
#endif
#if defined(_GLIBCXX_DEQUE) || !defined(__GLIBCXX__)
#include <deque>
template <class T, class A> struct Codec<std::deque<T, A>> : ListCodec<std::deque<T, A>> {};
#endif
#if defined(_GLIBCXX_SET) || !defined(__GLIBCXX__)
#include <set>
template <class T, class C, class A> struct Codec<std::set<T, C, A>> : SetCodec<std::set<T, C, A>> {};
template <class T, class C, class A> struct Codec<std::multiset<T, C, A>> : ListCodec<std::multiset<T, C, A>> {};
#endif
#if defined(_GLIBCXX_UNORDERED_SET) || !defined(__GLIBCXX__)
#include <unordered_set>
template <class T, class H, class E, class A>
struct Codec<std::unordered_set<T, H, E, A>> : SetCodec<std::unordered_set<T, H, E, A>> {};
#endif
#if defined(_GLIBCXX_MAP) || !defined(__GLIBCXX__)
#include <map>
template <class K, class V, class C, class A> struct Codec<std::map<K, V, C, A>> : MapCodec<std::map<K, V, C, A>> {};
#endif
#if defined(_GLIBCXX_UNORDERED_MAP) || !defined(__GLIBCXX__)
#include <unordered_map>
template <class K, class V, class H, class E, class A>
struct Codec<std::unordered_map<K, V, H, E, A>> : MapCodec<std::unordered_map<K, V, H, E, A>> {};
#endif
#if defined(_GLIBCXX_OPTIONAL) || !defined(__GLIBCXX__)
#include <optional>
template <class T> struct Codec<std::optional<T>> {
    static std::optional<T> read(const Value& value) {
        if (value.kind == Kind::null) return std::nullopt;
        return Codec<T>::read(value);
    }
    static void write(std::string& line, const std::optional<T>& value) {
        if (value) Codec<T>::write(line, *value);
        else line += "null";
    }
};
#endif

// ---- nodes ---------------------------------------------------------------------------------------------------------

// LeetCode's: a linked list is the list of its values, a binary tree that of its values level by level, with null where
// a child is missing.
constexpr std::size_t most_nodes = 1000000;  // they may be linked in a circle

template <class T, class = void> struct IsChain : std::false_type {};
template <class T> struct IsChain<T, std::void_t<decltype(T::val), decltype(T::next)>>
    : std::is_same<decltype(T::next), T*> {};
template <class T, class = void> struct IsTree : std::false_type {};
template <class T> struct IsTree<T, std::void_t<decltype(T::val), decltype(T::left), decltype(T::right)>>
    : std::is_same<decltype(T::left), T*> {};
template <class T> constexpr bool is_node = IsChain<T>::value || IsTree<T>::value;

template <class Node> Node* make_node(const Value& value) {
    auto held = Codec<Bare<decltype(Node::val)>>::read(value);
    if constexpr (std::is_default_constructible_v<Node>) {
        Node* node = new Node();
        node->val = held;
        return node;
    } else {
        return new Node(held);
    }
}

template <class Node> void count_node(std::size_t& count, std::string& line) {
    if (++count > most_nodes) throw std::length_error("a list or tree without end");
    if (count > 1) line += ',';
}

template <class Node> struct Codec<Node*, std::enable_if_t<IsChain<Node>::value>> {
    static Node* read(const Value& value) {
        Node* first = nullptr;
        Node** end = &first;
        if (value.kind == Kind::null) return first;
        for (const Value& item : items_of(value)) {
            *end = make_node<Node>(item);
            end = &(*end)->next;
            *end = nullptr;
        }
        return first;
    }
    static void write(std::string& line, const Node* node) {
        line += '[';
        for (std::size_t count = 0; node; node = node->next) {
            count_node<Node>(count, line);
            Codec<Bare<decltype(Node::val)>>::write(line, node->val);
        }
        line += ']';
    }
};

template <class Node> struct Codec<Node*, std::enable_if_t<IsTree<Node>::value>> {
    static Node* read(const Value& value) {
        Node* root = nullptr;
        if (value.kind == Kind::null) return root;
        std::vector<Node**> places{&root};
        std::size_t next = 0;
        for (const Value& item : items_of(value)) {
            if (next == places.size()) throw Mismatch("tree: it has a value without a parent");
            Node** place = places[next++];
            *place = item.kind == Kind::null ? nullptr : make_node<Node>(item);
            if (!*place) continue;
            (*place)->left = (*place)->right = nullptr;
            places.push_back(&(*place)->left);
            places.push_back(&(*place)->right);
        }
        return root;
    }
    static void write(std::string& line, const Node* root) {
        std::vector<const Node*> level{root};
        std::size_t count = 0, end = line.size() + 1;  // nulls behind the last value are not written
        line += '[';
        for (std::size_t i = 0; i < level.size(); i++) {
            count_node<Node>(count, line);
            if (!level[i]) { line += "null"; continue; }
            Codec<Bare<decltype(Node::val)>>::write(line, level[i]->val);
            end = line.size();
            level.push_back(level[i]->left);
            level.push_back(level[i]->right);
        }
        line.resize(end);
        line += ']';
    }
};

// ---- lines ---------------------------------------------------------------------------------------------------------

class Lines {
public:
    Lines(int in, int out) : in_(fdopen(in, "r")), out_(fdopen(out, "w")) {
        if (!in_ || !out_) end(no_reader);
    }

    bool next(std::string& line) {
        line.clear();
        for (int c; (c = getc_unlocked(in_)) != EOF; line += char(c)) {
            if (c == '\n') return true;
            if (line.size() >= most_bytes) end(too_long);
        }
        return false;
    }

    void put(const std::string& line) {
        bool is_written = std::fwrite(line.data(), 1, line.size(), out_) == line.size();
        if (!is_written || std::fputc('\n', out_) == EOF || std::fflush(out_) == EOF) end(no_reader);
    }

private:
    std::FILE* in_;
    std::FILE* out_;
};

// ---- the answerer --------------------------------------------------------------------------------------------------

// What a parameter's argument is stored as, and how it is passed.
template <class A, class = void> struct Argument {
    using Stored = Bare<A>;
    static Stored read(const Value& value) { return Codec<Stored>::read(value); }
    static A&& pass(Stored& stored) { return static_cast<A&&>(stored); }
    static constexpr bool is_changed = std::is_lvalue_reference_v<A> && !std::is_const_v<std::remove_reference_t<A>>;
};
template <class T> struct Argument<T*, std::enable_if_t<is_node<T>>> {
    using Stored = T*;
    static Stored read(const Value& value) { return Codec<T*>::read(value); }
    static T* pass(Stored& stored) { return stored; }
    static constexpr bool is_changed = true;
};
template <class T> struct Argument<T*, std::enable_if_t<!is_node<T>>> {  // an array, whose length is another argument or known
    using Item = std::remove_cv_t<T>;
    using Stored = std::conditional_t<std::is_same_v<Item, char>, std::string, std::vector<Item>>;
    static Stored read(const Value& value) { return Codec<Stored>::read(value); }
    static T* pass(Stored& stored) { return stored.data(); }
    static constexpr bool is_changed = !std::is_const_v<T>;
};
template <> struct Argument<std::string_view> {
    using Stored = std::string;
    static Stored read(const Value& value) { return Codec<Stored>::read(value); }
    static std::string_view pass(Stored& stored) { return stored; }
    static constexpr bool is_changed = false;
};

template <class A> void add_changed(std::string& list, std::size_t index, const typename Argument<A>::Stored& stored) {
    if constexpr (Argument<A>::is_changed) {
        list += (list.empty() ? "[" : ",[") + std::to_string(index) + ",";
        Codec<typename Argument<A>::Stored>::write(list, stored);
        list += ']';
    }
}

template <class A> bool take_changed(std::string& line, const typename Argument<A>::Stored& stored) {
    if constexpr (Argument<A>::is_changed) Codec<typename Argument<A>::Stored>::write(line, stored);
    return Argument<A>::is_changed;
}

// Returns the answer to a request for a callable with these parameters.
template <class R, class... A, class Call, std::size_t... I>
std::string answer(Call call, const Value& request, std::index_sequence<I...>) {
    const Value* with_changed = request.find("a");
    const std::vector<Value>& arguments = items_of(with_changed ? *with_changed : request);
    if (arguments.size() != sizeof...(A)) throw Mismatch("argument of the function: it takes another number of them");
    std::tuple<typename Argument<A>::Stored...> stored{Argument<A>::read(arguments[I])...};
    std::string line = "{\"v\":", changed;
    if constexpr (std::is_void_v<R>) {
        call(Argument<A>::pass(std::get<I>(stored))...);
        bool is_written = false;  // without a result, the first argument that it changes is one
        if (!with_changed) ((is_written = is_written || take_changed<A>(line, std::get<I>(stored))), ...);
        if (!is_written) line += "null";
    } else {
        Codec<Bare<R>>::write(line, call(Argument<A>::pass(std::get<I>(stored))...));
    }
    if (with_changed) {
        (add_changed<A>(changed, I, std::get<I>(stored)), ...);
        line += ",\"a\":[" + changed + "]";
    }
    return line + "}";
}

inline std::string error_line(const char* text) {
    std::string line = "{\"e\":";
    write_text(line, text, std::char_traits<char>::length(text));
    return line + "}";
}

template <class Answer> int serve_lines(Answer answer) {
    Lines lines(3, 4);
    std::string line;
    while (lines.next(line)) {
        try {
            lines.put(answer(Reader(line).whole()));
        } catch (const std::exception& fault) {
            lines.put(error_line(fault.what()));
        } catch (...) {
            lines.put(error_line("it threw what is no exception"));
        }
    }
    return 0;
}

template <class R, class... A, class Call> int serve_calls(Call call) {
    return serve_lines([call](const Value& request) {
        return answer<R, A...>(call, request, std::index_sequence_for<A...>());
    });
}

// Types of arguments, for a callable that leaves its own open.
template <class... A> struct Parameters {};

template <class Call, class... A> std::string answer_by(Parameters<A...>, Call call, const Value& request) {
    using Result = decltype(call(std::declval<A>()...));
    return answer<Result, A...>(call, request, std::index_sequence_for<A...>());
}

template <class Call, class... A> constexpr bool is_for(Parameters<A...>) { return std::is_invocable_v<Call, A...>; }

template <class First, class... Rest, class Call> std::string first_answer(Call call, const Value& request) {
    constexpr bool is_called = is_for<Call>(First());  // a method may be private
    if constexpr (sizeof...(Rest) == 0) {
        if constexpr (is_called) return answer_by(First(), call, request);
        else throw Mismatch("type that the function takes");
    } else {
        if constexpr (is_called) {
            try {
                return answer_by(First(), call, request);
            } catch (const Mismatch&) {
            }
        }
        return first_answer<Rest...>(call, request);
    }
}

// Answers each call by the first of some signatures that its arguments fit.
template <class... Signatures, class Call> int serve_each(Call call) {
    return serve_lines([call](const Value& request) { return first_answer<Signatures...>(call, request); });
}

// The parameters of a definition, as a callable of references is called for it.
template <class Signature> struct ByReference;
template <class... A> struct ByReference<Parameters<A...>> {
    using type = Parameters<std::conditional_t<std::is_reference_v<A> || std::is_pointer_v<A>, A, const A&>...>;
};

// Answers each call by the first of a function's own definitions that its arguments fit.
template <class... Signatures, class Call> int serve_overloads(Call call) {
    return serve_each<typename ByReference<Signatures>::type...>(call);
}

template <class R, class... A> int serve(R (*function)(A...)) { return serve_calls<R, A...>(function); }

template <class R, class Owner, class... A> int serve(R (Owner::*method)(A...)) {
    return serve_calls<R, A...>([method](A... arguments) -> R {
        Owner owner{};
        return (owner.*method)(std::forward<A>(arguments)...);
    });
}
template <class R, class Owner, class... A> int serve(R (Owner::*method)(A...) const) {
    return serve(reinterpret_cast<R (Owner::*)(A...)>(method));
}

}  // namespace rewardkit_driver
#endif
