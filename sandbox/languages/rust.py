"""Rust, by rustc and the linker of gcc."""

from __future__ import annotations

from sandbox.languages.drivers.rust import RustDriver
from sandbox.languages.gcc import GCC, GCC_FILES, LINKER, PROGRAM
from sandbox.languages.language import MIB, Language, MissingMain, Stage, Tool, Walls

_RUSTUP = "toolchains/*/bin/rustc"  # the compiler itself: rustup's own rustc starts another program
_LEVEL = "-Copt-level=1"

LANGUAGE = Language(
    name="rust",
    source_name="main.rs",
    tools=(
        Tool(
            "rustc",
            (f"~/.rustup/{_RUSTUP}", f"/usr/local/rustup/{_RUSTUP}", "rustc"),
            version=(_LEVEL, "--version"),  # rustup answers to --version, and does not know the other
            install="apt-get install rustc",
        ),
        GCC,
    ),
    compile=Stage(
        commands=(
            (
                *("{rustc}", _LEVEL, "-Cdebuginfo=0", "--edition=2021", "-Awarnings", "--sysroot={rustc_home}"),
                *("-Clinker={gcc}", "-o", "program", "main.rs"),
            ),
        ),
        walls=Walls(
            executable=("{rustc}", "{rustc_home}/lib/rustlib", "{gcc}", *GCC_FILES, *LINKER),
            readable=("{rustc_home}/lib",),
            environment=(("LD_LIBRARY_PATH", "{rustc_home}/lib"),),  # it would read /proc for it
            tasks=64,
            forks=True,
            proc=True,  # rustc asks /proc/self/exe where it is, and panics without
            data_share=0.0,
            most_memory=1536 * MIB,
            open_files=256,
        ),
        takes=("program",),
    ),
    run=PROGRAM,
    hello='fn main() { println!("hello"); }\n',
    memory_texts=("memory allocation of",),
    driver=RustDriver(),
    main=MissingMain("`main` function not found", "\nfn main() {}\n"),
)
