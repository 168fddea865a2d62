"""PHP, without the machine's settings."""

from __future__ import annotations

from sandbox.languages.drivers.php import PhpDriver
from sandbox.languages.language import Language, Stage, Tool, Walls
from sandbox.languages.notation import Notation

_OPTIONS = ("-n",)  # no php.ini


def with_tag(source: str) -> str:
    """Return a program with PHP's tag before it where it has none, since PHP prints such a file as it is."""
    return source if "<?php" in source.lower() or "<?=" in source else f"<?php {source}"


_WALLS = Walls(executable=("{php}",))

LANGUAGE = Language(
    name="php",
    source_name="main.php",
    tools=(Tool("php", ("php",), version=(*_OPTIONS, "--version"), install="apt-get install php-cli"),),
    run=Stage(
        commands=(
            (
                "{php}",
                *_OPTIONS,
                *("-d", "memory_limit={memory_mb}M", "-d", "display_errors=stderr", "-d", "zend.assertions=1"),
                "{scratch}/main.php",
            ),
        ),
        walls=_WALLS,
    ),
    check=Stage(commands=(("{php}", *_OPTIONS, "-l", "{scratch}/main.php"),), walls=_WALLS),
    prepare=with_tag,
    hello='<?php echo "hello\\n";\n',
    memory_texts=("Allowed memory size of", "Out of memory", "mmap() failed: [12]"),
    driver=PhpDriver(),
    notation=Notation(first_index=0),
)
