package org.junit;

import org.junit.rewardkit.Checks;

/** The assertions of JUnit 4: a message comes first, then what is expected. */
public class Assert {
    protected Assert() {}

    public interface ThrowingRunnable { void run() throws Throwable; }

    public static void assertTrue(boolean holds) { Checks.check(holds, null, "expected: <true> but was: <false>"); }
    public static void assertTrue(String message, boolean holds) { Checks.check(holds, message, "expected: <true> but was: <false>"); }
    public static void assertFalse(boolean holds) { Checks.check(!holds, null, "expected: <false> but was: <true>"); }
    public static void assertFalse(String message, boolean holds) { Checks.check(!holds, message, "expected: <false> but was: <true>"); }
    public static void assertNull(Object value) { Checks.check(value == null, null, "expected: <null> but was: <" + value + ">"); }
    public static void assertNull(String message, Object value) { Checks.check(value == null, message, "expected: <null> but was: <" + value + ">"); }
    public static void assertNotNull(Object value) { Checks.check(value != null, null, "expected: not <null>"); }
    public static void assertNotNull(String message, Object value) { Checks.check(value != null, message, "expected: not <null>"); }
    public static void assertSame(Object expected, Object actual) { Checks.check(expected == actual, null, "expected: <" + expected + "> but was: <" + actual + ">"); }
    public static void assertNotSame(Object one, Object other) { Checks.check(one != other, null, "expected: not same but was: <" + other + ">"); }
    public static void assertEquals(Object expected, Object actual) { Checks.equal(expected, actual, null); }
    public static void assertEquals(String message, Object expected, Object actual) { Checks.equal(expected, actual, message); }
    public static void assertEquals(long expected, long actual) { Checks.equal(expected, actual, null); }
    public static void assertEquals(String message, long expected, long actual) { Checks.equal(expected, actual, message); }
    public static void assertEquals(double expected, double actual, double delta) { Checks.near(expected, actual, delta, null); }
    public static void assertEquals(String message, double expected, double actual, double delta) { Checks.near(expected, actual, delta, message); }
    public static void assertEquals(float expected, float actual, float delta) { Checks.near(expected, actual, delta, null); }
    public static void assertNotEquals(Object one, Object other) { Checks.check(!java.util.Objects.equals(one, other), null, "expected: not equal but was: <" + other + ">"); }
    public static void assertNotEquals(long one, long other) { Checks.check(one != other, null, "expected: not equal but was: <" + other + ">"); }
    public static void assertArrayEquals(double[] expected, double[] actual, double delta) { Checks.arrays(expected, actual, delta, null); }
    public static void assertArrayEquals(float[] expected, float[] actual, float delta) { Checks.arrays(expected, actual, delta, null); }
    public static void assertArrayEquals(byte[] expected, byte[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(String message, byte[] expected, byte[] actual) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(short[] expected, short[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(String message, short[] expected, short[] actual) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(int[] expected, int[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(String message, int[] expected, int[] actual) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(long[] expected, long[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(String message, long[] expected, long[] actual) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(char[] expected, char[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(String message, char[] expected, char[] actual) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(float[] expected, float[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(String message, float[] expected, float[] actual) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(double[] expected, double[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(String message, double[] expected, double[] actual) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(boolean[] expected, boolean[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(String message, boolean[] expected, boolean[] actual) { Checks.arrays(expected, actual, 0, message); }
    public static void assertArrayEquals(Object[] expected, Object[] actual) { Checks.arrays(expected, actual, 0, null); }
    public static void assertArrayEquals(String message, Object[] expected, Object[] actual) { Checks.arrays(expected, actual, 0, message); }
    public static <T extends Throwable> T assertThrows(Class<T> expected, ThrowingRunnable code) { return Checks.thrown(expected, code::run, null, false); }
    public static <T extends Throwable> T assertThrows(String message, Class<T> expected, ThrowingRunnable code) { return Checks.thrown(expected, code::run, message, false); }
    public static void fail() { throw new AssertionError("failed"); }
    public static void fail(String message) { throw new AssertionError(message); }
}
