package org.junit.rewardkit;

import java.lang.reflect.Array;
import java.util.Iterator;
import java.util.Objects;

/** What the assertions of both versions come down to. */
public final class Checks {
    private Checks() {}

    public static void check(boolean holds, Object message, String otherwise) {
        if (holds) return;
        Object text = message instanceof java.util.function.Supplier<?> ? ((java.util.function.Supplier<?>) message).get() : message;
        throw new AssertionError(text == null ? otherwise : text + " ==> " + otherwise);
    }

    private static boolean areBoxed(Object one, Object other) {
        return one instanceof Number && other instanceof Number && one.getClass() == other.getClass();
    }

    public static void equal(Object expected, Object actual, Object message) {
        check(Objects.equals(expected, actual), message, "expected: <" + expected + "> but was: <" + actual + ">");
    }

    public static void near(double expected, double actual, double delta, Object message) {
        boolean holds = Double.doubleToLongBits(expected) == Double.doubleToLongBits(actual) || Math.abs(expected - actual) <= delta;
        check(holds, message, "expected: <" + expected + "> but was: <" + actual + ">");
    }

    public static void arrays(Object expected, Object actual, double delta, Object message) {
        if (expected == actual) return;
        check(expected != null && actual != null && expected.getClass().isArray() && actual.getClass().isArray(), message, "one is no array");
        int length = Array.getLength(expected);
        check(length == Array.getLength(actual), message, "array lengths differ, expected: <" + length + "> but was: <" + Array.getLength(actual) + ">");
        for (int at = 0; at < length; at++) {
            Object one = Array.get(expected, at), other = Array.get(actual, at);
            if (one != null && other != null && one.getClass().isArray() && other.getClass().isArray()) arrays(one, other, delta, message);
            else if (delta > 0 && areBoxed(one, other)) near(((Number) one).doubleValue(), ((Number) other).doubleValue(), delta, message);
            else check(Objects.equals(one, other), message, "array contents differ at index [" + at + "], expected: <" + one + "> but was: <" + other + ">");
        }
    }

    public static void iterables(Iterable<?> expected, Iterable<?> actual, Object message) {
        check(expected != null && actual != null, message, "expected: <" + expected + "> but was: <" + actual + ">");
        Iterator<?> one = expected.iterator(), other = actual.iterator();
        while (one.hasNext() && other.hasNext()) equal(one.next(), other.next(), message);
        check(!one.hasNext() && !other.hasNext(), message, "expected: <" + expected + "> but was: <" + actual + ">");
    }

    public interface Code { void run() throws Throwable; }

    public static <T extends Throwable> T thrown(Class<T> expected, Code code, Object message, boolean isExact) {
        try {
            code.run();
        } catch (Throwable error) {
            boolean fits = isExact ? error.getClass() == expected : expected.isInstance(error);
            check(fits, message, "expected " + expected.getName() + " to be thrown, but " + error + " was");
            return expected.cast(error);
        }
        check(false, message, "expected " + expected.getName() + " to be thrown, but nothing was");
        return null;
    }

    /** What an assumption that does not hold throws: the test is skipped. */
    public static final class Aborted extends RuntimeException {
        public Aborted(String message) { super(message); }
    }
}
