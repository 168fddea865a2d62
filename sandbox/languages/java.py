"""Java, by a JDK: javac and java of the same one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from sandbox.languages.drivers.java import JavaDriver
from sandbox.languages.java_source import MAIN, with_main_class
from sandbox.languages.language import MIB, Kit, Language, Stage, Tool, Walls

_SMALL = (  # a JVM that starts soon, and reserves little
    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xss1m"),
    *("-XX:ReservedCodeCacheSize=48m", "-XX:CompressedClassSpaceSize=64m"),
)
_OPENED = "--add-opens=java.base/java.io=ALL-UNNAMED"  # so that the driver opens descriptors by their numbers
_COMPILER = ("{javac}", "-J-Xms8m", "-J-Xmx512m", *(f"-J{option}" for option in _SMALL))
_ARCHIVE = "javac.jsa"  # the classes of the compiler as it has them in memory, which halves what its start takes
_SOURCES = ("-proc:none", "-nowarn", "-encoding", "UTF-8", "-d", ".", "Main.java")
_INSTALL = "apt-get install openjdk-17-jdk-headless"
_SETTINGS = tuple(f"/etc/java-{version}-openjdk" for version in (11, 17, 21, 25))  # where Debian's JDKs have theirs
_WALLS = Walls(
    executable=("{java}",),
    readable=("{javac_home}", *_SETTINGS),
    # it would read /proc for these; with the directory of the JVM first it does not start itself a second time
    environment=(("LD_LIBRARY_PATH", "{javac_home}/lib/server:{javac_home}/lib"),),
    tasks=48,
    data_share=2.0,
)
_COMPILER_WALLS = Walls(
    executable=("{javac}",),
    readable=_WALLS.readable,
    environment=_WALLS.environment,
    tasks=48,
    data_share=0.0,
    most_memory=1024 * MIB,
    open_files=256,
)
_USUAL = """
import java.util.*;
import java.util.function.*;
import java.util.stream.*;

class Main {
    record Pair<A, B>(A first, B second) {}
    enum Kind { ONE, MANY }
    static <T extends Comparable<T>> T most(List<? extends T> items) { return items.stream().max(T::compareTo).get(); }
    public static void main(String[] args) throws Exception {
        Map<String, List<Integer>> groups = new TreeMap<>();
        for (String arg : args) groups.computeIfAbsent(arg, key -> new ArrayList<>()).add(arg.length());
        try (Scanner in = new Scanner(System.in)) {
            while (in.hasNext()) switch (in.next()) { case "a" -> System.out.println(1); default -> {} }
        } catch (IllegalStateException fault) { throw new RuntimeException("x" + fault, fault); }
        int[][] table = new int[2][3];
        System.out.println(IntStream.range(0, 3).mapToObj(i -> "" + table[1][i]).collect(Collectors.joining(",")));
    }
}
"""


def compiled(sources: Iterable[str]) -> Stage:
    """Return the stage that compiles several files, whose classes may be in packages."""
    options = _SOURCES[:-1]
    command = (*_COMPILER, f"-J-XX:SharedArchiveFile={{kit}}/{_ARCHIVE}", *options, *sources)
    walls = dataclasses.replace(_COMPILER_WALLS, readable=(*_COMPILER_WALLS.readable, "{kit}"))
    return Stage(commands=(command,), walls=walls, takes=("*.class",))


_HELLO = 'class Main { public static void main(String[] args) { System.out.println("hello"); } }\n'

LANGUAGE = Language(
    name="java",
    source_name="Main.java",
    tools=(
        Tool("javac", ("javac", "/usr/lib/jvm/*/bin/javac"), install=_INSTALL),
        Tool("java", ("{javac_home}/bin/java",), install=_INSTALL),
    ),
    compile=compiled(["Main.java"]),
    kit=Kit(
        files={"Main.java": _USUAL},
        stage=Stage(
            commands=((*_COMPILER, f"-J-XX:ArchiveClassesAtExit={_ARCHIVE}", *_SOURCES),),
            walls=_COMPILER_WALLS,
            takes=(_ARCHIVE,),
        ),
    ),
    run=Stage(
        commands=(("{java}", "-Xms8m", "-Xmx{heap_mb}m", *_SMALL, "-ea", _OPENED, "-cp", "{artefact}", MAIN),),
        walls=_WALLS,
    ),
    prepare=with_main_class,
    hello=_HELLO,
    memory_texts=("java.lang.OutOfMemoryError",),
    start_s=1.0,
    driver=JavaDriver(),
)
