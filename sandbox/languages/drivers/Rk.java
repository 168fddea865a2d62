/**
 * Values of Java as lines of JSON, and calls of a method by its own types.
 *
 * <p>"serve": answers calls, read from descriptor 3, on 4. "test": runs tests, whose stub asks the other way round. The
 * class stands in the file of the completion or the tests, so it imports nothing.
 */
class RewardkitDriver {
    static final int MOST_BYTES = 8 << 20, MOST_DEPTH = 200;
    /** How a tester ends where no answer can be used, so that it never goes on with a wrong value. */
    static final int NO_ANSWER = 71, NO_JSON = 72, WRONG_TYPE = 73, TOO_LONG = 74, NO_READER = 75, TESTS_AT_FAULT = 77;

    static class NotJson extends RuntimeException {}

    static class Mismatch extends RuntimeException {
        Mismatch(String type) { super("an argument is no " + type); }
    }

    public static void main(java.lang.String[] words) throws Throwable {
        if (words[0].equals("test")) test(words[1]);
        else serve(words[1], java.util.Arrays.copyOfRange(words, 2, words.length));
        java.lang.System.out.flush();
        java.lang.Runtime.getRuntime().halt(0);
    }

    // ---- JSON ----------------------------------------------------------------------------------------------------

    /** Reads null, Boolean, BigInteger, Double, String, List, and a Tagged for each object. */
    static class Reader {
        final java.lang.String line;
        int next = 0;

        Reader(java.lang.String line) { this.line = line; }

        Object whole() {
            Object value = read(0);
            skipBlanks();
            if (next != line.length()) throw new NotJson();
            return value;
        }

        Object read(int depth) {
            if (depth > MOST_DEPTH) throw new NotJson();
            switch (peek()) {
                case '"': return text();
                case '[': return list(depth);
                case '{': return object(depth);
                case 't': return word("true", true);
                case 'f': return word("false", false);
                case 'n': return word("null", null);
                default: return number();
            }
        }

        Object list(int depth) {
            java.util.List<Object> items = new java.util.ArrayList<>();
            next++;
            if (closes(']')) return items;
            do items.add(read(depth + 1)); while (goesOn(']'));
            return items;
        }

        Object object(int depth) {
            java.util.Map<java.lang.String, Object> members = new java.util.LinkedHashMap<>();
            next++;
            if (!closes('}')) {
                do {
                    if (peek() != '"') throw new NotJson();
                    java.lang.String key = text();
                    if (peek() != ':') throw new NotJson();
                    next++;
                    members.put(key, read(depth + 1));
                } while (goesOn('}'));
            }
            return new Tagged(members);
        }

        Object number() {
            int start = next;
            while (next < line.length() && "+-0123456789.eE".indexOf(line.charAt(next)) >= 0) next++;
            java.lang.String digits = line.substring(start, next);
            if (digits.isEmpty() || digits.length() > 5000) throw new NotJson();
            try {
                boolean isWhole = digits.indexOf('.') < 0 && digits.indexOf('e') < 0 && digits.indexOf('E') < 0;
                if (isWhole) return new java.math.BigInteger(digits);
                return java.lang.Double.valueOf(digits);
            } catch (NumberFormatException fault) {
                throw new NotJson();
            }
        }

        java.lang.String text() {
            java.lang.StringBuilder text = new java.lang.StringBuilder();
            next++;
            for (char c = take(); c != '"'; c = take()) text.append(c == '\\' ? escaped() : c);
            return text.toString();
        }

        char escaped() {
            char c = take();
            switch (c) {
                case 'n': return '\n';
                case 't': return '\t';
                case 'r': return '\r';
                case 'b': return '\b';
                case 'f': return '\f';
                case '"': case '\\': case '/': return c;
                case 'u': return unit();
                default: throw new NotJson();
            }
        }

        char unit() {
            int unit = 0;
            for (int i = 0; i < 4; i++) {
                int digit = java.lang.Character.digit(take(), 16);
                if (digit < 0) throw new NotJson();
                unit = unit * 16 + digit;
            }
            return (char) unit;
        }

        Object word(java.lang.String letters, Object value) {
            if (!line.startsWith(letters, next)) throw new NotJson();
            next += letters.length();
            return value;
        }

        boolean closes(char bracket) {
            if (peek() != bracket) return false;
            next++;
            return true;
        }

        boolean goesOn(char bracket) {
            char c = peek();
            next++;
            if (c != ',' && c != bracket) throw new NotJson();
            return c == ',';
        }

        char take() {
            if (next >= line.length()) throw new NotJson();
            return line.charAt(next++);
        }

        char peek() {
            skipBlanks();
            if (next >= line.length()) throw new NotJson();
            return line.charAt(next);
        }

        void skipBlanks() {
            while (next < line.length() && " \t\r\n".indexOf(line.charAt(next)) >= 0) next++;
        }
    }

    static class Tagged {
        final java.util.Map<java.lang.String, Object> members;

        Tagged(java.util.Map<java.lang.String, Object> members) { this.members = members; }
    }

    /** Returns what stands behind one of some tags, or the value itself. */
    static Object untagged(Object value, java.lang.String... tags) {
        if (value instanceof Tagged && ((Tagged) value).members.size() == 1)
            for (java.lang.String tag : tags)
                if (((Tagged) value).members.containsKey(tag)) return ((Tagged) value).members.get(tag);
        return value;
    }

    // ---- values by types -----------------------------------------------------------------------------------------

    static Object as(java.lang.reflect.Type type, Object value) {
        if (type instanceof java.lang.reflect.ParameterizedType) {
            java.lang.reflect.ParameterizedType generic = (java.lang.reflect.ParameterizedType) type;
            Class<?> raw = (Class<?>) generic.getRawType();
            java.lang.reflect.Constructor<?> constructor = constructorOfParts(raw);
            if (constructor == null) return container(raw, generic.getActualTypeArguments(), value);
            return whole(constructor, generic.getActualTypeArguments(), value);
        }
        if (type instanceof java.lang.reflect.GenericArrayType) {
            java.lang.reflect.Type item = ((java.lang.reflect.GenericArrayType) type).getGenericComponentType();
            return array(item, rawOf(item), value);
        }
        if (type instanceof java.lang.reflect.WildcardType)
            return as(((java.lang.reflect.WildcardType) type).getUpperBounds()[0], value);
        if (!(type instanceof Class<?>)) return natural(value);
        Class<?> plain = (Class<?>) type;
        if (plain.isArray()) return array(plain.getComponentType(), plain.getComponentType(), value);
        if (java.util.Collection.class.isAssignableFrom(plain) || java.util.Map.class.isAssignableFrom(plain))
            return container(plain, new java.lang.reflect.Type[] {Object.class, Object.class}, value);
        java.lang.reflect.Constructor<?> constructor = constructorOfParts(plain);
        if (constructor != null) return whole(constructor, constructor.getGenericParameterTypes(), value);
        return scalar(plain, value);
    }

    /** Returns how a record or a tuple is made of its parts; null for other classes. */
    static java.lang.reflect.Constructor<?> constructorOfParts(Class<?> raw) {
        Class<?> parent = raw.getSuperclass();
        java.lang.String kind = parent == null ? "" : parent.getName();
        if (!kind.equals("RewardkitTuple") && !kind.equals("java.lang.Record")) return null;
        java.lang.reflect.Constructor<?> constructor = raw.getDeclaredConstructors()[0];
        constructor.setAccessible(true);
        return constructor;
    }

    static Object whole(java.lang.reflect.Constructor<?> constructor, java.lang.reflect.Type[] types, Object value) {
        if (value == null) return null;
        java.util.List<?> parts = itemsOf(value);
        if (parts.size() != types.length) throw new Mismatch("tuple of its length");
        Object[] values = new Object[types.length];
        for (int i = 0; i < types.length; i++) values[i] = as(types[i], parts.get(i));
        try {
            return constructor.newInstance(values);
        } catch (ReflectiveOperationException | IllegalArgumentException fault) {
            throw new Mismatch(constructor.getName());
        }
    }

    /** Returns the parts of a record, in the order of its declaration. */
    static java.util.List<Object> partsOf(Object value) {
        java.util.List<Object> parts = new java.util.ArrayList<>();
        try {
            for (java.lang.reflect.Field field : value.getClass().getDeclaredFields()) {
                if (java.lang.reflect.Modifier.isStatic(field.getModifiers())) continue;
                field.setAccessible(true);
                parts.add(field.get(value));
            }
        } catch (IllegalAccessException fault) {
            throw new IllegalArgumentException(fault);
        }
        return parts;
    }

    static Class<?> rawOf(java.lang.reflect.Type type) {
        if (type instanceof Class<?>) return (Class<?>) type;
        if (type instanceof java.lang.reflect.ParameterizedType)
            return (Class<?>) ((java.lang.reflect.ParameterizedType) type).getRawType();
        return Object.class;
    }

    static Object array(java.lang.reflect.Type item, Class<?> raw, Object value) {
        java.util.List<?> items = itemsOf(value);
        Object array = java.lang.reflect.Array.newInstance(raw, items.size());
        for (int i = 0; i < items.size(); i++) java.lang.reflect.Array.set(array, i, as(item, items.get(i)));
        return array;
    }

    static java.util.List<?> itemsOf(Object value) {
        Object items = untagged(value, "$s");
        if (!(items instanceof java.util.List)) throw new Mismatch("list");
        return (java.util.List<?>) items;
    }

    static Object container(Class<?> raw, java.lang.reflect.Type[] types, Object value) {
        if (raw == java.util.Optional.class)
            return java.util.Optional.ofNullable(value == null ? null : as(types[0], value));
        if (value == null) return null;
        if (java.util.Map.class.isAssignableFrom(raw)) {
            java.util.Map<Object, Object> map = make(raw, new java.util.LinkedHashMap<>(), new java.util.TreeMap<>());
            for (Object pair : itemsOf(untagged(value, "$m", "$o")))
                map.put(key(types[0], itemsOf(pair).get(0)), as(types[1], itemsOf(pair).get(1)));
            return map;
        }
        if (raw == java.util.Map.Entry.class) {
            java.util.List<?> pair = itemsOf(value);
            return new java.util.AbstractMap.SimpleEntry<>(as(types[0], pair.get(0)), as(types[1], pair.get(1)));
        }
        java.util.Collection<Object> items = make(
            raw, new java.util.ArrayList<>(), new java.util.LinkedHashSet<>(), new java.util.TreeSet<>(),
            new java.util.ArrayDeque<>());
        for (Object item : itemsOf(value)) items.add(as(types[0], item));
        return items;
    }

    /** Returns a key: those of JSON's objects are texts, also where a number is meant. */
    static Object key(java.lang.reflect.Type type, Object value) {
        boolean isNumber = type instanceof Class<?> && Number.class.isAssignableFrom((Class<?>) type);
        return as(type, isNumber && value instanceof java.lang.String ? new Reader((java.lang.String) value).whole() : value);
    }

    /** Returns a new container of a class, or the first of some that is of its interface. */
    @SafeVarargs
    @SuppressWarnings("unchecked")
    static <T> T make(Class<?> raw, T... defaults) {
        for (T made : defaults)
            if (raw.isInstance(made) && (raw.isInterface() || raw == made.getClass())) return made;
        try {
            java.lang.reflect.Constructor<?> constructor = raw.getDeclaredConstructor();
            return (T) constructor.newInstance();
        } catch (ReflectiveOperationException fault) {
            throw new Mismatch(raw.getName());
        }
    }

    static Object scalar(Class<?> type, Object value) {
        if (type == Object.class || type == java.io.Serializable.class || type == Comparable.class) return natural(value);
        if (value == null && !type.isPrimitive()) return null;
        Object number = untagged(value, "$i");
        if (number instanceof java.lang.String && value instanceof Tagged) number = new java.math.BigInteger((java.lang.String) number);
        if (number instanceof java.math.BigInteger || number instanceof java.lang.Double) return number(type, number);
        if (untagged(value, "$f") != value) return number(type, special(value));
        if (value instanceof java.lang.Boolean && (type == boolean.class || type == java.lang.Boolean.class)) return value;
        if (value instanceof java.lang.String && type.isAssignableFrom(java.lang.String.class)) return value;
        boolean isCharacter = type == char.class || type == java.lang.Character.class;
        if (isCharacter && value instanceof java.lang.String && ((java.lang.String) value).length() == 1)
            return ((java.lang.String) value).charAt(0);
        throw new Mismatch(type.getSimpleName());
    }

    static java.lang.Double special(Object value) {
        Object name = untagged(value, "$f");
        if ("NaN".equals(name)) return java.lang.Double.NaN;
        return "-Infinity".equals(name) ? java.lang.Double.NEGATIVE_INFINITY : java.lang.Double.POSITIVE_INFINITY;
    }

    static Object number(Class<?> type, Object number) {
        try {
            if (type == double.class || type == java.lang.Double.class || type == Number.class && number instanceof java.lang.Double)
                return ((Number) number).doubleValue();
            if (type == float.class || type == java.lang.Float.class) return ((Number) number).floatValue();
            if (type == java.math.BigDecimal.class) return new java.math.BigDecimal(number.toString());
            java.math.BigInteger whole = number instanceof java.math.BigInteger
                ? (java.math.BigInteger) number
                : new java.math.BigDecimal((java.lang.Double) number).toBigIntegerExact();
            if (type == int.class || type == java.lang.Integer.class) return whole.intValueExact();
            if (type == long.class || type == java.lang.Long.class) return whole.longValueExact();
            if (type == short.class || type == java.lang.Short.class) return whole.shortValueExact();
            if (type == byte.class || type == java.lang.Byte.class) return whole.byteValueExact();
            if (type == java.math.BigInteger.class) return whole;
            if (type == Number.class) return natural(whole);
        } catch (ArithmeticException | NumberFormatException fault) {
            throw new Mismatch(type.getSimpleName());
        }
        throw new Mismatch(type.getSimpleName());
    }

    /** Returns what a value is where its type says nothing: a small integer is an Integer, a list an ArrayList. */
    static Object natural(Object value) {
        if (value instanceof java.math.BigInteger) {
            java.math.BigInteger whole = (java.math.BigInteger) value;
            if (whole.bitLength() < 32) return whole.intValue();
            return whole.bitLength() < 64 ? (Object) whole.longValue() : whole;
        }
        if (value instanceof java.util.List) return container(java.util.List.class, NATURAL, value);
        if (!(value instanceof Tagged)) return value;
        if (untagged(value, "$f") != value) return special(value);
        if (untagged(value, "$i") != value) return number(java.math.BigInteger.class, scalar(java.math.BigInteger.class, value));
        if (untagged(value, "$s") != value) return container(java.util.Set.class, NATURAL, value);
        if (untagged(value, "$m", "$o") != value) return container(java.util.Map.class, NATURAL, value);
        if (untagged(value, "$u") != value) return null;
        throw new Mismatch("value of Java");
    }

    static final java.lang.reflect.Type[] NATURAL = {Object.class, Object.class};

    // ---- values to JSON ------------------------------------------------------------------------------------------

    static java.lang.String encode(Object value) {
        java.lang.StringBuilder line = new java.lang.StringBuilder();
        write(line, value, 0);
        return line.toString();
    }

    static void write(java.lang.StringBuilder line, Object value, int depth) {
        if (depth > MOST_DEPTH / 2) throw new IllegalArgumentException("nested too deep");
        if (value == null || value instanceof java.lang.Boolean) line.append(value);
        else if (value instanceof java.lang.Double || value instanceof java.lang.Float) writeFloat(line, value);
        else if (value instanceof java.math.BigDecimal) writeFloat(line, ((java.math.BigDecimal) value).doubleValue());
        else if (value instanceof Number) line.append(value);
        else if (value instanceof CharSequence || value instanceof java.lang.Character) writeText(line, value.toString());
        else if (value instanceof java.util.Optional)
            write(line, ((java.util.Optional<?>) value).orElse(null), depth + 1);
        else if (value instanceof java.util.Map) {
            line.append("{\"$m\":");
            writeItems(line, ((java.util.Map<?, ?>) value).entrySet(), depth);
            line.append('}');
        } else if (value instanceof java.util.Map.Entry) {
            java.util.Map.Entry<?, ?> entry = (java.util.Map.Entry<?, ?>) value;
            writeItems(line, java.util.Arrays.asList(entry.getKey(), entry.getValue()), depth);
        } else if (value instanceof java.util.Set) {
            line.append("{\"$s\":");
            writeItems(line, (java.util.Set<?>) value, depth);
            line.append('}');
        } else if (value instanceof Iterable) writeItems(line, (Iterable<?>) value, depth);
        else if (value.getClass().isArray()) writeItems(line, itemsOfArray(value), depth);
        else if (value instanceof java.util.stream.BaseStream)
            writeItems(line, listOf(((java.util.stream.BaseStream<?, ?>) value).iterator()), depth);
        else if (value.getClass().getSuperclass().getName().equals("java.lang.Record")) writeItems(line, partsOf(value), depth);
        else {
            line.append("{\"$x\":");
            writeText(line, value.getClass().getName());
            line.append('}');
        }
    }

    static java.util.List<Object> listOf(java.util.Iterator<?> items) {
        java.util.List<Object> list = new java.util.ArrayList<>();
        while (items.hasNext()) list.add(items.next());
        return list;
    }

    static java.util.List<Object> itemsOfArray(Object array) {
        java.util.List<Object> items = new java.util.ArrayList<>();
        for (int i = 0; i < java.lang.reflect.Array.getLength(array); i++) items.add(java.lang.reflect.Array.get(array, i));
        return items;
    }

    static void writeItems(java.lang.StringBuilder line, Iterable<?> items, int depth) {
        line.append('[');
        boolean isFirst = true;
        for (Object item : items) {
            if (!isFirst) line.append(',');
            isFirst = false;
            write(line, item, depth + 1);
        }
        line.append(']');
    }

    static void writeFloat(java.lang.StringBuilder line, Object value) {
        double number = ((Number) value).doubleValue();
        boolean isFinite = !java.lang.Double.isNaN(number) && !java.lang.Double.isInfinite(number);
        if (isFinite) line.append(value);
        else line.append("{\"$f\":\"").append(value).append("\"}");
    }

    static void writeText(java.lang.StringBuilder line, java.lang.String text) {
        line.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') line.append('\\').append(c);
            else if (c >= 32 && c < 127) line.append(c);
            else line.append(java.lang.String.format("\\u%04x", (int) c));
        }
        line.append('"');
    }

    // ---- lines ---------------------------------------------------------------------------------------------------

    static java.io.InputStream in;
    static java.io.OutputStream out;

    static void open(int input, int output) throws ReflectiveOperationException {
        java.lang.reflect.Constructor<java.io.FileDescriptor> make =
            java.io.FileDescriptor.class.getDeclaredConstructor(int.class);
        make.setAccessible(true);
        in = new java.io.BufferedInputStream(new java.io.FileInputStream(make.newInstance(input)));
        out = new java.io.FileOutputStream(make.newInstance(output));
    }

    static java.lang.String nextLine() throws java.io.IOException {
        java.io.ByteArrayOutputStream bytes = new java.io.ByteArrayOutputStream();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) return null;
            bytes.write(c);
            if (bytes.size() > MOST_BYTES) java.lang.Runtime.getRuntime().halt(TOO_LONG);
        }
        return bytes.toString(java.nio.charset.StandardCharsets.UTF_8);
    }

    static void put(java.lang.String line) {
        try {
            out.write((line + "\n").getBytes(java.nio.charset.StandardCharsets.UTF_8));
        } catch (java.io.IOException fault) {
            java.lang.Runtime.getRuntime().halt(NO_READER);
        }
    }

    // ---- the answerer --------------------------------------------------------------------------------------------

    static void serve(java.lang.String name, java.lang.String[] classes) throws Throwable {
        java.util.List<java.lang.reflect.Method> methods = methodsOf(classes, name);
        open(3, 4);
        for (java.lang.String line = nextLine(); line != null; line = nextLine()) {
            java.lang.String answer;
            try {
                answer = answer(methods, new Reader(line).whole());
            } catch (Throwable fault) {
                Throwable cause = fault instanceof java.lang.reflect.InvocationTargetException ? fault.getCause() : fault;
                answer = "{\"e\":" + encode(java.lang.String.valueOf(cause)) + "}";
            }
            put(answer);
        }
    }

    /** Returns the methods of a name of the first class that has any. */
    static java.util.List<java.lang.reflect.Method> methodsOf(java.lang.String[] classes, java.lang.String name)
        throws Throwable {
        java.util.List<Class<?>> owners = new java.util.ArrayList<>();
        for (java.lang.String owner : classes) owners.add(Class.forName(owner, false, RewardkitDriver.class.getClassLoader()));
        for (int i = 0; i < owners.size(); i++) owners.addAll(java.util.Arrays.asList(owners.get(i).getDeclaredClasses()));
        java.util.List<java.lang.reflect.Method> methods = new java.util.ArrayList<>();
        for (Class<?> owner : owners) {
            for (java.lang.reflect.Method method : owner.getDeclaredMethods())
                if (method.getName().equals(name) && !method.isSynthetic()) methods.add(method);
            methods.sort(java.util.Comparator.comparing(RewardkitDriver::breadth));
            if (!methods.isEmpty()) return methods;
        }
        throw new NoSuchMethodException(name);
    }

    /** Returns how much a method's parameters take: of overloads the one with the narrowest that fit is called. */
    static int breadth(java.lang.reflect.Method method) {
        int breadth = 0;
        for (Class<?> type : method.getParameterTypes()) breadth += Math.max(0, NARROW_FIRST.indexOf(type));
        return breadth;
    }

    static final java.util.List<Class<?>> NARROW_FIRST = java.util.Arrays.asList(
        boolean.class, java.lang.String.class, byte.class, short.class, int.class, java.lang.Integer.class, long.class,
        java.lang.Long.class, float.class, java.lang.Float.class, double.class, java.lang.Double.class, Object.class);

    static java.lang.String answer(java.util.List<java.lang.reflect.Method> methods, Object request) throws Throwable {
        boolean withChanged = request instanceof Tagged;
        java.util.List<?> trees = itemsOf(untagged(request, "a"));
        Mismatch mismatch = new Mismatch("argument of the method: it takes another number of them");
        for (java.lang.reflect.Method method : methods) {
            java.util.List<?> arguments = method.isVarArgs() ? withRest(trees, method.getParameterCount() - 1) : trees;
            if (method.getParameterCount() != arguments.size()) continue;
            Object[] values;
            try {
                values = argumentsOf(method, arguments);
            } catch (Mismatch fault) {
                mismatch = fault;
                continue;
            }
            return call(method, values, withChanged);
        }
        throw mismatch;
    }

    /** Returns arguments whose last is the list of all that are left, unless it is a list already. */
    static java.util.List<?> withRest(java.util.List<?> trees, int fixed) {
        boolean isList = trees.size() == fixed + 1 && trees.get(fixed) instanceof java.util.List;
        if (isList || trees.size() < fixed) return trees;
        java.util.List<Object> arguments = new java.util.ArrayList<>(trees.subList(0, fixed));
        arguments.add(new java.util.ArrayList<>(trees.subList(fixed, trees.size())));
        return arguments;
    }

    static Object[] argumentsOf(java.lang.reflect.Method method, java.util.List<?> trees) {
        java.lang.reflect.Type[] types = method.getGenericParameterTypes();
        Object[] values = new Object[types.length];
        for (int i = 0; i < types.length; i++) values[i] = as(types[i], trees.get(i));
        return values;
    }

    static java.lang.String call(java.lang.reflect.Method method, Object[] values, boolean withChanged) throws Throwable {
        boolean isVoid = method.getReturnType() == void.class;
        java.util.List<java.lang.String> before = new java.util.ArrayList<>();
        if (isVoid || withChanged) for (Object value : values) before.add(encode(value));
        method.setAccessible(true);
        java.lang.String result = encode(method.invoke(ownerOf(method), values));
        java.lang.StringBuilder changed = new java.lang.StringBuilder();
        for (int i = 0; i < before.size(); i++) {
            java.lang.String now = encode(values[i]);
            if (now.equals(before.get(i))) continue;
            if (!withChanged) return "{\"v\":" + now + "}"; // without a result, what it changed is one
            changed.append(changed.length() == 0 ? "[" : ",[").append(i).append(',').append(now).append(']');
        }
        return withChanged ? "{\"v\":" + result + ",\"a\":[" + changed + "]}" : "{\"v\":" + result + "}";
    }

    static Object ownerOf(java.lang.reflect.Method method) throws ReflectiveOperationException {
        if (java.lang.reflect.Modifier.isStatic(method.getModifiers())) return null;
        java.lang.reflect.Constructor<?> constructor = method.getDeclaringClass().getDeclaredConstructor();
        constructor.setAccessible(true);
        return constructor.newInstance();
    }

    // ---- the tester ----------------------------------------------------------------------------------------------

    static long calls = 0;

    /** Runs tests; an end without a call shows nothing. */
    static void test(java.lang.String owner) throws Throwable {
        open(4, 3);
        java.lang.Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            java.lang.System.out.flush();
            if (calls == 0) java.lang.Runtime.getRuntime().halt(TESTS_AT_FAULT);
        }));
        java.lang.reflect.Method main = Class.forName(owner).getDeclaredMethod("main", java.lang.String[].class);
        main.setAccessible(true);
        try {
            main.invoke(null, (Object) new java.lang.String[0]);
        } catch (java.lang.reflect.InvocationTargetException fault) {
            fault.getCause().printStackTrace();
            java.lang.System.exit(1);
        }
        java.lang.System.exit(0);
    }

    /** Calls the answerer; the stub's own declaration says what the result is. */
    @SuppressWarnings("unchecked")
    static <T> T ask(Class<?> owner, java.lang.String name, Object[] values) {
        calls++;
        put("{\"a\":" + encode(values) + "}");
        Tagged reply = reply();
        if (reply.members.containsKey("e")) throw new RuntimeException("the method threw: " + reply.members.get("e"));
        if (!reply.members.containsKey("v")) java.lang.Runtime.getRuntime().halt(NO_JSON);
        for (java.lang.reflect.Method method : owner.getDeclaredMethods()) {
            if (!method.getName().equals(name) || method.getParameterCount() != values.length) continue;
            try {
                writeBack(method, values, reply.members.get("a"));
                return (T) (method.getReturnType() == void.class ? null : as(method.getGenericReturnType(), reply.members.get("v")));
            } catch (Mismatch | IndexOutOfBoundsException fault) {
                java.lang.Runtime.getRuntime().halt(WRONG_TYPE);
            }
        }
        throw new RuntimeException("no method " + name);
    }

    static Tagged reply() {
        try {
            java.lang.String line = nextLine();
            if (line == null) java.lang.Runtime.getRuntime().halt(NO_ANSWER);
            Object reply = new Reader(line).whole();
            if (reply instanceof Tagged) return (Tagged) reply;
        } catch (java.io.IOException fault) {
            java.lang.Runtime.getRuntime().halt(NO_ANSWER);
        } catch (NotJson fault) {
            java.lang.Runtime.getRuntime().halt(NO_JSON);
        }
        java.lang.Runtime.getRuntime().halt(NO_JSON);
        return null;
    }

    @SuppressWarnings("unchecked")
    static void writeBack(java.lang.reflect.Method method, Object[] values, Object changed) {
        if (changed == null) return;
        for (Object pair : itemsOf(changed)) {
            int index = (Integer) as(int.class, itemsOf(pair).get(0));
            Object now = as(method.getGenericParameterTypes()[index], itemsOf(pair).get(1));
            if (values[index] instanceof java.util.Collection) {
                ((java.util.Collection<Object>) values[index]).clear();
                ((java.util.Collection<Object>) values[index]).addAll((java.util.Collection<Object>) now);
            } else if (values[index] instanceof java.util.Map) {
                ((java.util.Map<Object, Object>) values[index]).clear();
                ((java.util.Map<Object, Object>) values[index]).putAll((java.util.Map<Object, Object>) now);
            } else if (values[index] != null && values[index].getClass().isArray()) {
                int length = java.lang.reflect.Array.getLength(values[index]);
                if (length != java.lang.reflect.Array.getLength(now)) throw new Mismatch("array of its length");
                java.lang.System.arraycopy(now, 0, values[index], 0, length);
            }
        }
    }
}
