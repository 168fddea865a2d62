"""Java, by a JDK: javac and java of the same one."""

from __future__ import annotations

from sandbox.languages.java_source import MAIN, with_main_class
from sandbox.languages.language import MIB, Language, Stage, Tool, Walls

_SMALL = (  # a JVM that starts soon, and reserves little
    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xss1m"),
    *("-XX:ReservedCodeCacheSize=48m", "-XX:CompressedClassSpaceSize=64m"),
)
_COMPILER = ("{javac}", "-J-Xms8m", "-J-Xmx512m", *(f"-J{option}" for option in _SMALL))
_SOURCES = ("-proc:none", "-nowarn", "-encoding", "UTF-8", "-d", ".", "Main.java")
_INSTALL = "apt-get install openjdk-17-jdk-headless"
_SETTINGS = tuple(f"/etc/java-{version}-openjdk" for version in (11, 17, 21, 25))  # where Debian's JDKs have theirs
_WALLS = Walls(
    executable=("{java}",),
    readable=("{javac_home}", *_SETTINGS),
    environment=(("LD_LIBRARY_PATH", "{javac_home}/lib:{javac_home}/lib/server"),),  # it would read /proc for these
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
_HELLO = 'class Main { public static void main(String[] args) { System.out.println("hello"); } }\n'

LANGUAGE = Language(
    name="java",
    source_name="Main.java",
    tools=(
        Tool("javac", ("javac", "/usr/lib/jvm/*/bin/javac"), install=_INSTALL),
        Tool("java", ("{javac_home}/bin/java",), install=_INSTALL),
    ),
    compile=Stage(commands=((*_COMPILER, *_SOURCES),), walls=_COMPILER_WALLS, takes=("*.class",)),
    run=Stage(
        commands=(("{java}", "-Xms8m", "-Xmx{heap_mb}m", *_SMALL, "-ea", "-cp", "{artefact}", MAIN),),
        walls=_WALLS,
    ),
    prepare=with_main_class,
    hello=_HELLO,
    memory_texts=("java.lang.OutOfMemoryError",),
    start_s=1.0,
)
