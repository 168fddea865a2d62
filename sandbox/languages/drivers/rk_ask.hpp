// Calls of a function that is in another process: the body of the tests' stub.
//
// ask(a, b) writes a call to descriptor 3 and reads its answer from 4.
#ifndef REWARDKIT_ASKER
#define REWARDKIT_ASKER

#include "rk.hpp"
#include <csignal>

namespace rewardkit_driver {

class Asker {
public:
    static Asker& only() {
        static Asker asker;
        return asker;
    }

    template <class... A> Value ask(A&... arguments) {
        calls++;
        std::string line = "{\"a\":[";
        bool first = true;
        ((line += first ? "" : ",", first = false, Codec<Bare<A>>::write(line, arguments)), ...);
        lines_.put(line + "]}");
        if (!lines_.next(line)) end(no_answer);
        try {
            Value reply = Reader(line).whole();
            if (const Value* fault = reply.find("e")) throw std::runtime_error("the function threw: " + fault->text);
            if (const Value* changed = reply.find("a")) write_back(*changed, arguments...);
            if (const Value* value = reply.find("v")) return *value;
        } catch (const NotJson&) {
        } catch (const Mismatch&) {
            end(wrong_type);
        }
        end(no_json);
    }

private:
    static inline long calls = 0;
    Lines lines_{4, 3};

    Asker() {
        std::signal(SIGPIPE, SIG_IGN);  // writing fails then
        // Tests that end without a call have shown nothing.
        if (std::atexit([] { if (calls == 0) std::_Exit(tests_at_fault); })) end(tests_at_fault);
    }

    template <class... A> static void write_back(const Value& changed, A&... arguments) {
        for (const Value& pair : items_of(changed)) {
            if (pair.items.size() != 2) throw Mismatch("changed argument");
            std::size_t wanted = Codec<std::size_t>::read(pair.items[0]), index = 0;
            ((index++ == wanted ? assign(arguments, pair.items[1]) : void()), ...);
        }
    }
    template <class T> static void assign(T& argument, const Value& value) {
        if constexpr (std::is_assignable_v<T&, T> && !std::is_pointer_v<T>) argument = Codec<T>::read(value);
    }
};

struct Reply {
    Value value;
    template <class T> T as() const {
        try {
            if constexpr (!std::is_void_v<T>) return Codec<Bare<T>>::read(value);
        } catch (const Mismatch&) {
            end(wrong_type);
        }
    }
    template <class T> operator T() const { return as<T>(); }
};

template <class... A> Reply ask(A&... arguments) { return {Asker::only().ask(arguments...)}; }

}  // namespace rewardkit_driver
#endif
