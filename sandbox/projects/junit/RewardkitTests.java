import java.lang.annotation.Annotation;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.function.Function;
import org.junit.rewardkit.Checks;

/** Runs the tests of classes one after the other, and writes a line of JSON for each. */
final class RewardkitTests {
    private static final java.io.PrintStream OUT = System.out;
    private static String mark;

    public static void main(String[] args) {
        mark = args[0];
        for (int at = 1; at + 1 < args.length; at += 2) runClass(args[at], args[at + 1]);
        write("{\"end\": 0}");
        OUT.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void write(String line) { OUT.print("\n" + mark + line + "\n"); OUT.flush(); }

    private static String text(Object value) {
        StringBuilder out = new StringBuilder("\"");
        for (char each : String.valueOf(value).toCharArray()) {
            if (each < 32 || each == '"' || each == '\\' || Character.isSurrogate(each)) out.append(String.format("\\u%04x", (int) each));
            else out.append(each);
            if (out.length() > 300) break;
        }
        return out.append('"').toString();
    }

    private static List<Method> methods(Class<?> kind, Class<?>... marks) {
        List<Method> found = new ArrayList<>();
        for (Class<?> at = kind; at != null && at != Object.class; at = at.getSuperclass()) {
            Method[] own = at.getDeclaredMethods();
            Arrays.sort(own, Comparator.comparing(Method::getName).thenComparing(Method::toString));
            List<Method> marked = new ArrayList<>();
            for (Method method : own) {
                boolean isHidden = found.stream().anyMatch(other -> other.getName().equals(method.getName()) && Arrays.equals(other.getParameterTypes(), method.getParameterTypes()));
                if (!isHidden && has(method, marks)) { method.setAccessible(true); marked.add(method); }
            }
            found.addAll(0, marked); // those of the class above come first
        }
        return found;
    }

    @SuppressWarnings("unchecked")
    private static boolean has(java.lang.reflect.AnnotatedElement element, Class<?>... marks) {
        for (Class<?> each : marks) if (element.isAnnotationPresent((Class<? extends Annotation>) each)) return true;
        return false;
    }

    private static void runClass(String file, String name) {
        Class<?> kind;
        try {
            kind = Class.forName(name);
            if (Modifier.isAbstract(kind.getModifiers())) return;
            if (!has(kind, org.junit.jupiter.api.Disabled.class, org.junit.Ignore.class))
                invokeAll(null, methods(kind, org.junit.jupiter.api.BeforeAll.class, org.junit.BeforeClass.class));
        } catch (Throwable error) {
            write("{\"broken\": " + text(file) + ", \"message\": " + text(cause(error)) + "}");
            return;
        }
        for (Method test : methods(kind, org.junit.jupiter.api.Test.class, org.junit.Test.class, org.junit.jupiter.params.ParameterizedTest.class)) {
            boolean isSkipped = has(kind, org.junit.jupiter.api.Disabled.class, org.junit.Ignore.class) || has(test, org.junit.jupiter.api.Disabled.class, org.junit.Ignore.class);
            String title = file + "::" + test.getName();
            if (isSkipped || test.getParameterCount() == 0) { report(title, kind, test, isSkipped, new Object[0]); continue; }
            int number = 0;
            try {
                for (Object[] row : rows(kind, test)) report(title + "[" + ++number + "]", kind, test, false, row);
            } catch (Throwable error) {
                report(title, "failed", 0, cause(error));
            }
        }
        try {
            invokeAll(null, methods(kind, org.junit.jupiter.api.AfterAll.class, org.junit.AfterClass.class));
        } catch (Throwable error) {
            write("{\"broken\": " + text(file) + ", \"message\": " + text(cause(error)) + "}");
        }
    }

    private static void report(String title, Class<?> kind, Method test, boolean isSkipped, Object[] row) {
        long began = System.nanoTime();
        Throwable error = null;
        org.junit.Test four = test.getAnnotation(org.junit.Test.class);
        if (!isSkipped) {
            try {
                var constructor = kind.getDeclaredConstructor();
                constructor.setAccessible(true);
                Object instance = constructor.newInstance();
                invokeAll(instance, methods(kind, org.junit.jupiter.api.BeforeEach.class, org.junit.Before.class));
                try {
                    test.invoke(instance, row);
                    if (four != null && four.expected() != org.junit.Test.None.class) error = new AssertionError("expected " + four.expected().getName());
                } catch (InvocationTargetException thrown) {
                    boolean isExpected = four != null && four.expected().isInstance(thrown.getCause());
                    error = isExpected ? null : thrown.getCause();
                } finally {
                    invokeAll(instance, methods(kind, org.junit.jupiter.api.AfterEach.class, org.junit.After.class));
                }
            } catch (Throwable other) {
                error = error == null ? cause(other) : error;
            }
        }
        boolean isAborted = error instanceof Checks.Aborted;
        report(title, isSkipped || isAborted ? "skipped" : error == null ? "passed" : "failed", System.nanoTime() - began, error);
    }

    private static void report(String title, String outcome, long took, Throwable error) {
        write("{\"collected\": [" + text(title) + "]}");
        write("{\"test\": " + text(title) + ", \"outcome\": \"" + outcome + "\", \"duration_s\": " + (took / 1e9 + 1e-9) + ", \"line\": " + line(title, error) + ", \"message\": "
            + text(error == null ? "" : error instanceof AssertionError ? error.getMessage() : error.toString()) + "}");
    }

    /** The line of the test's own file at which it failed. */
    private static int line(String title, Throwable error) {
        String file = title.substring(0, title.indexOf("::"));
        int line = 0;
        for (StackTraceElement frame : error == null ? new StackTraceElement[0] : error.getStackTrace())
            if (file.substring(file.lastIndexOf('/') + 1).equals(frame.getFileName())) line = frame.getLineNumber();
        return line;
    }

    private static void invokeAll(Object instance, List<Method> methods) throws Throwable {
        for (Method method : methods) {
            try { method.invoke(instance); } catch (InvocationTargetException error) { throw error.getCause(); }
        }
    }

    private static Throwable cause(Throwable error) {
        while ((error instanceof InvocationTargetException || error instanceof ExceptionInInitializerError) && error.getCause() != null) error = error.getCause();
        return error;
    }

    private static List<Object[]> rows(Class<?> kind, Method test) throws Throwable {
        List<Object[]> rows = new ArrayList<>();
        Class<?>[] kinds = test.getParameterTypes();
        var csv = test.getAnnotation(org.junit.jupiter.params.provider.CsvSource.class);
        if (csv != null) for (String line : csv.value()) rows.add(converted(cells(line, csv.delimiter()), kinds));
        var values = test.getAnnotation(org.junit.jupiter.params.provider.ValueSource.class);
        if (values != null) {
            for (Object list : new Object[] {values.ints(), values.longs(), values.doubles(), values.strings(), values.booleans(), values.chars()})
                for (int at = 0; at < java.lang.reflect.Array.getLength(list); at++) rows.add(new Object[] {java.lang.reflect.Array.get(list, at)});
        }
        var source = test.getAnnotation(org.junit.jupiter.params.provider.MethodSource.class);
        if (source != null) {
            for (String name : source.value().length == 0 ? new String[] {test.getName()} : source.value()) {
                Method method = kind.getDeclaredMethod(name);
                method.setAccessible(true);
                Object made = method.invoke(null);
                java.util.Iterator<?> all = made instanceof java.util.stream.BaseStream<?, ?> ? ((java.util.stream.BaseStream<?, ?>) made).iterator() : ((Iterable<?>) made).iterator();
                while (all.hasNext()) {
                    Object row = all.next();
                    rows.add(row instanceof org.junit.jupiter.params.provider.Arguments ? ((org.junit.jupiter.params.provider.Arguments) row).get() : row instanceof Object[] ? (Object[]) row : new Object[] {row});
                }
            }
        }
        if (rows.isEmpty()) throw new AssertionError("no rows for its parameters");
        return rows;
    }

    private static List<String> cells(String line, char delimiter) {
        List<String> cells = new ArrayList<>();
        StringBuilder cell = new StringBuilder();
        boolean isQuoted = false, wasQuoted = false;
        for (char each : line.toCharArray()) {
            if (each == '\'') { isQuoted = !isQuoted; wasQuoted = true; }
            else if (each == delimiter && !isQuoted) { cells.add(cell(cell, wasQuoted)); cell.setLength(0); wasQuoted = false; }
            else cell.append(each);
        }
        cells.add(cell(cell, wasQuoted));
        return cells;
    }

    private static String cell(StringBuilder text, boolean wasQuoted) {
        if (wasQuoted) return text.toString().strip();
        String plain = text.toString().strip();
        return plain.isEmpty() ? null : plain;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object[] converted(List<String> cells, Class<?>[] kinds) {
        Object[] row = new Object[kinds.length];
        for (int at = 0; at < kinds.length; at++) {
            String cell = at < cells.size() ? cells.get(at) : null;
            Class<?> kind = kinds[at];
            if (cell == null || kind == String.class) row[at] = cell;
            else if (kind == int.class || kind == Integer.class) row[at] = Integer.decode(cell);
            else if (kind == long.class || kind == Long.class) row[at] = Long.decode(cell);
            else if (kind == short.class || kind == Short.class) row[at] = Short.decode(cell);
            else if (kind == byte.class || kind == Byte.class) row[at] = Byte.decode(cell);
            else if (kind == double.class || kind == Double.class) row[at] = Double.valueOf(cell);
            else if (kind == float.class || kind == Float.class) row[at] = Float.valueOf(cell);
            else if (kind == boolean.class || kind == Boolean.class) row[at] = Boolean.valueOf(cell);
            else if (kind == char.class || kind == Character.class) row[at] = cell.charAt(0);
            else if (kind.isEnum()) row[at] = Enum.valueOf((Class) kind, cell);
            else throw new IllegalArgumentException("a cell cannot be a " + kind.getName());
        }
        return row;
    }
}
