package org.junit.jupiter.api;

import java.util.function.Supplier;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.function.ThrowingSupplier;
import org.junit.rewardkit.Checks;

/** The assertions of JUnit 5: what is expected comes first, a message last. */
public class Assertions {
    protected Assertions() {}

    public static void assertTrue(boolean holds) { Checks.check(holds, null, "expected: <true> but was: <false>"); }
    public static void assertTrue(boolean holds, String message) { Checks.check(holds, message, "expected: <true> but was: <false>"); }
    public static void assertTrue(boolean holds, Supplier<String> message) { Checks.check(holds, message, "expected: <true> but was: <false>"); }
    public static void assertFalse(boolean holds) { Checks.check(!holds, null, "expected: <false> but was: <true>"); }
    public static void assertFalse(boolean holds, String message) { Checks.check(!holds, message, "expected: <false> but was: <true>"); }
    public static void assertFalse(boolean holds, Supplier<String> message) { Checks.check(!holds, message, "expected: <false> but was: <true>"); }
    public static void assertNull(Object value) { Checks.check(value == null, null, "expected: <null> but was: <" + value + ">"); }
    public static void assertNull(Object value, String message) { Checks.check(value == null, message, "expected: <null> but was: <" + value + ">"); }
    public static void assertNotNull(Object value) { Checks.check(value != null, null, "expected: not <null>"); }
    public static void assertNotNull(Object value, String message) { Checks.check(value != null, message, "expected: not <null>"); }
    public static void assertSame(Object expected, Object actual) { Checks.check(expected == actual, null, "expected: <" + expected + "> but was: <" + actual + ">"); }
    public static void assertSame(Object expected, Object actual, String message) { Checks.check(expected == actual, message, "expected: <" + expected + "> but was: <" + actual + ">"); }
    public static void assertNotSame(Object one, Object other) { Checks.check(one != other, null, "expected: not same but was: <" + other + ">"); }
    public static void assertNotEquals(Object one, Object other) { Checks.check(!java.util.Objects.equals(one, other), null, "expected: not equal but was: <" + other + ">"); }
    public static void assertNotEquals(Object one, Object other, String message) { Checks.check(!java.util.Objects.equals(one, other), message, "expected: not equal but was: <" + other + ">"); }
    public static void assertEquals(Object expected, Object actual) { Checks.equal(expected, actual, null); }
    public static void assertEquals(Object expected, Object actual, String message) { Checks.equal(expected, actual, message); }
    public static void assertEquals(Object expected, Object actual, Supplier<String> message) { Checks.equal(expected, actual, message); }
    public static void assertEquals(byte expected, byte actual) { Checks.equal(expected, actual, null); }
    public static void assertEquals(byte expected, byte actual, String message) { Checks.equal(expected, actual, message); }
    public static void assertNotEquals(byte one, byte other) { Checks.check(one != other, null, "expected: not equal but was: <" + other + ">"); }
    public static void assertEquals(short expected, short actual) { Checks.equal(expected, actual, null); }
    public static void assertEquals(short expected, short actual, String message) { Checks.equal(expected, actual, message); }
    public static void assertNotEquals(short one, short other) { Checks.check(one != other, null, "expected: not equal but was: <" + other + ">"); }
    public static void assertEquals(int expected, int actual) { Checks.equal(expected, actual, null); }
    public static void assertEquals(int expected, int actual, String message) { Checks.equal(expected, actual, message); }
    public static void assertNotEquals(int one, int other) { Checks.check(one != other, null, "expected: not equal but was: <" + other + ">"); }
    public static void assertEquals(long expected, long actual) { Checks.equal(expected, actual, null); }
    public static void assertEquals(long expected, long actual, String message) { Checks.equal(expected, actual, message); }
    public static void assertNotEquals(long one, long other) { Checks.check(one != other, null, "expected: not equal but was: <" + other + ">"); }
    public static void assertEquals(char expected, char actual) { Checks.equal(expected, actual, null); }
    public static void assertEquals(char expected, char actual, String message) { Checks.equal(expected, actual, message); }
    public static void assertNotEquals(char one, char other) { Checks.check(one != other, null, "expected: not equal but was: <" + other + ">"); }
    public static void assertEquals(float expected, float actual) { Checks.equal(expected, actual, null); }
    public static void assertEquals(float expected, float actual, String message) { Checks.equal(expected, actual, message); }
    public static void assertNotEquals(float one, float other) { Checks.check(one != other, null, "expected: not equal but was: <" + other + ">"); }
    public static void assertEquals(double expected, double actual) { Checks.equal(expected, actual, null); }
    public static void assertEquals(double expected, double actual, String message) { Checks.equal(expected, actual, message); }
    public static void assertNotEquals(double one, double other) { Checks.check(one != other, null, "expected: not equal but was: <" + other + ">"); }
    public static void assertEquals(float expected, float actual, float delta) { Checks.near(expected, actual, delta, null); }
    public static void assertEquals(float expected, float actual, float delta, String message) { Checks.near(expected, actual, delta, message); }
    public static void assertEquals(double expected, double actual, double delta) { Checks.near(expected, actual, delta, null); }
    public static void assertEquals(double expected, double actual, double delta, String message) { Checks.near(expected, actual, delta, message); }
    public static void assertArrayEquals(double[] expected, double[] actual, double delta) { Checks.arrays(expected, actual, delta, null); }
    public static void assertArrayEquals(float[] expected, float[] actual, float delta) { Checks.arrays(expected, actual, delta, null); }
    public static void assertArrayEquals(byte[] expected, byte[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(byte[] expected, byte[] actual, String message) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(short[] expected, short[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(short[] expected, short[] actual, String message) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(int[] expected, int[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(int[] expected, int[] actual, String message) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(long[] expected, long[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(long[] expected, long[] actual, String message) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(char[] expected, char[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(char[] expected, char[] actual, String message) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(float[] expected, float[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(float[] expected, float[] actual, String message) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(double[] expected, double[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(double[] expected, double[] actual, String message) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(boolean[] expected, boolean[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(boolean[] expected, boolean[] actual, String message) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(Object[] expected, Object[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(Object[] expected, Object[] actual, String message) { Checks.arrays(expected, actual, 0, message); }
    public static void assertIterableEquals(Iterable<?> expected, Iterable<?> actual) { Checks.iterables(expected, actual, null); }
    public static void assertIterableEquals(Iterable<?> expected, Iterable<?> actual, String message) { Checks.iterables(expected, actual, message); }
    public static void assertLinesMatch(java.util.List<String> expected, java.util.List<String> actual) { Checks.iterables(expected, actual, null); }
    public static <T> T assertInstanceOf(Class<T> kind, Object value) { Checks.check(kind.isInstance(value), null, "expected an instance of " + kind.getName() + " but was: <" + value + ">"); return kind.cast(value); }
    public static <T extends Throwable> T assertThrows(Class<T> expected, Executable code) { return Checks.thrown(expected, code::execute, null, false); }
    public static <T extends Throwable> T assertThrows(Class<T> expected, Executable code, String message) { return Checks.thrown(expected, code::execute, message, false); }
    public static <T extends Throwable> T assertThrowsExactly(Class<T> expected, Executable code) { return Checks.thrown(expected, code::execute, null, true); }
    public static void assertDoesNotThrow(Executable code) { try { code.execute(); } catch (Throwable error) { throw new AssertionError("unexpected exception thrown: " + error, error); } }
    public static <T> T assertDoesNotThrow(ThrowingSupplier<T> code) { try { return code.get(); } catch (Throwable error) { throw new AssertionError("unexpected exception thrown: " + error, error); } }
    public static void assertAll(Executable... checks) { assertAll(null, checks); }
    public static void assertAll(String heading, Executable... checks) {
        AssertionError first = null;
        for (Executable check : checks) {
            try { check.execute(); } catch (Throwable error) { if (first == null) first = new AssertionError(String.valueOf(error.getMessage()), error); }
        }
        if (first != null) throw first;
    }
    public static <T> T assertTimeout(java.time.Duration limit, ThrowingSupplier<T> code) { return assertDoesNotThrow(code); }
    public static void assertTimeout(java.time.Duration limit, Executable code) { assertDoesNotThrow(code); }
    public static <T> T fail() { throw new AssertionError("failed"); }
    public static <T> T fail(String message) { throw new AssertionError(message); }
    public static <T> T fail(String message, Throwable cause) { throw new AssertionError(message, cause); }
}
