// Arguments and results of a function in C, by the conventions of its types: a text ends with a zero, an array has its
// length in the next parameter, and an array of arrays the lengths of these in the one after it.
#ifndef REWARDKIT_C
#define REWARDKIT_C

#include "rk.hpp"
#include <cstdint>
#include <new>

struct ListNode { int val; ListNode* next; };
struct TreeNode { int val; TreeNode* left; TreeNode* right; };

namespace rewardkit_driver {

// Memory that the function may free or make larger.
template <class T> T* room(std::size_t count) {
    void* memory = std::calloc(count + 1, sizeof(T));
    if (!memory) throw std::bad_alloc();
    return static_cast<T*>(memory);
}

template <class T> T scalar(const Value& value) {
    if constexpr (is_integer<T>)
        if (value.kind == Kind::truth) return T(value.truth);
    if constexpr (std::is_same_v<T, bool>)
        if (value.kind == Kind::number) return Codec<long long>::read(value) != 0;
    return Codec<T>::read(value);
}

// Each of what follows is one argument.

template <class T> struct Scalar {
    T value;
    explicit Scalar(const Value& argument) : value(scalar<T>(argument)) {}
};

struct Text {
    char* data = nullptr;
    explicit Text(const Value& argument) {
        if (argument.kind == Kind::null) return;
        std::string text = Codec<std::string>::read(argument);
        if (text.find('\0') != std::string::npos) throw Mismatch("text without a zero in it");
        data = room<char>(text.size());
        text.copy(data, text.size());
    }
};

template <class T> struct Array {
    T* data;
    long size;
    explicit Array(const Value& argument) {
        const std::vector<Value>& items = items_of(argument);
        data = room<T>(items.size());
        size = long(items.size());
        for (long i = 0; i < size; i++) data[i] = read(items[i]);
    }
    static T read(const Value& item) {
        if constexpr (std::is_same_v<T, char*>) return Text(item).data;
        else if constexpr (std::is_pointer_v<T>) return Codec<T>::read(item);
        else return scalar<T>(item);
    }
};

template <class T> struct Rows {
    T** data;
    int* sizes;
    long size;
    explicit Rows(const Value& argument) {
        const std::vector<Value>& items = items_of(argument);
        data = room<T*>(items.size());
        sizes = room<int>(items.size());
        size = long(items.size());
        for (long i = 0; i < size; i++) {
            Array<T> row(items[i]);
            data[i] = row.data;
            sizes[i] = int(row.size);
        }
    }
};

template <class Node> struct Nodes {
    Node* data;
    explicit Nodes(const Value& argument) : data(Codec<Node*>::read(argument)) {}
};

// ---- results -------------------------------------------------------------------------------------------------------

template <class T> void put(std::string& line, const T& value) {
    if constexpr (std::is_same_v<T, char*> || std::is_same_v<T, const char*>) {
        if (value) Codec<const char*>::write(line, value);
        else line += "null";
    } else {
        Codec<T>::write(line, value);
    }
}

template <class T> void put_array(std::string& line, const T* items, long size) {
    if (size < 0 || (size > 0 && !items)) throw std::length_error("the function gave an array another length than it has");
    line += '[';
    for (long i = 0; i < size; i++) {
        if (i) line += ',';
        put(line, items[i]);
    }
    line += ']';
}

template <class T> void put_rows(std::string& line, T* const* rows, long size, const int* sizes) {
    if (size < 0 || (size > 0 && (!rows || !sizes))) throw std::length_error("the function gave arrays other lengths than they have");
    line += '[';
    for (long i = 0; i < size; i++) {
        if (i) line += ',';
        put_array(line, rows[i], sizes[i]);
    }
    line += ']';
}

inline const std::vector<Value>& arguments(const Value& request, std::size_t count) {
    const std::vector<Value>& items = items_of(request);
    if (items.size() != count) throw Mismatch("argument of the function: it takes another number of them");
    return items;
}

}  // namespace rewardkit_driver
#endif
