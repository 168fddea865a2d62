"""Programs that do nothing but use up one thing, in each language of the jail: time, memory, output, threads."""

from __future__ import annotations

SPINS = {
    "bash": "while :; do :; done",
    "c": "int main(){volatile int x=0;for(;;)x++;}",
    "cpp": "int main(){volatile int x=0;for(;;)x=x+1;}",
    "go": "package main\nfunc main(){for{}}",
    "java": "public class Main{public static void main(String[] a){while(true){}}}",
    "javascript": "for(;;);",
    "lua": "while true do end",
    "perl": "1 while 1;",
    "php": "<?php while(true){}",
    "ruby": "loop{}",
    "rust": "fn main(){let mut x=0u64;loop{x=x.wrapping_add(1);std::hint::black_box(x);}}",
    "typescript": "for(;;);",
}
WAITS = {
    "bash": "sleep 100",
    "c": "#include <unistd.h>\nint main(){sleep(100);}",
    "cpp": "#include <unistd.h>\nint main(){sleep(100);}",
    "go": 'package main\nimport "time"\nfunc main(){time.Sleep(100*time.Second)}',
    "java": "public class Main{public static void main(String[] a)throws Exception{Thread.sleep(100000);}}",
    "javascript": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)),0,0,100000);",
    "lua": "local until_s = os.time() + 100\nwhile os.time() < until_s do end",
    "perl": "sleep 100;",
    "php": "<?php sleep(100);",
    "ruby": "sleep 100",
    "rust": "fn main(){std::thread::sleep(std::time::Duration::from_secs(100));}",
    "typescript": "setTimeout(() => {}, 100000);",
}
FILLS_MEMORY = {
    "bash": 'x=0123456789; while :; do x="$x$x"; done',
    "c": (
        "#include <stdlib.h>\n#include <string.h>\nint main(){for(;;){char*p=malloc(1<<20);"
        "if(!p)abort();memset(p,1,1<<20);}}"
    ),
    "cpp": "#include <vector>\nint main(){std::vector<char*> v;for(;;){v.push_back(new char[1<<20]());}}",
    "go": "package main\nvar k [][]byte\nfunc main(){for{b:=make([]byte,1<<20);for i:=range b{b[i]=1};k=append(k,b)}}",
    "java": (
        "import java.util.*;public class Main{public static void main(String[] a)"
        "{List<long[]> l=new ArrayList<>();while(true)l.add(new long[1<<17]);}}"
    ),
    "javascript": "const a=[];for(;;)a.push(new Array(1<<17).fill(1));",
    "lua": "local t={} local i=0 while true do i=i+1 t[i]=string.rep('x',1048576)..i end",
    "perl": 'my @a; push @a, "x" x 1048576 while 1;',
    "php": "<?php $a=[];while(true)$a[]=str_repeat('x',1048576);",
    "ruby": "a=[];loop{a<<('x'*1048576)}",
    "rust": "fn main(){let mut v=Vec::new();loop{v.push(vec![1u8;1<<20]);}}",
    "typescript": "const a: number[][]=[];for(;;)a.push(new Array(1<<17).fill(1));",
}
SHARES_MEMORY = {
    "c": (
        "#include <sys/mman.h>\n#include <string.h>\n#include <unistd.h>\nint main(){for(;;){"
        "char*p=mmap(0,1<<20,3,MAP_SHARED|MAP_ANONYMOUS,-1,0);if(p==MAP_FAILED)pause();memset(p,1,1<<20);}}"
    ),
    "javascript": "const a=[];for(;;){const b=Buffer.alloc(1<<20,1);a.push(b)}",
    "java": (
        "import java.util.*;import java.nio.*;public class Main{public static void main(String[] a)"
        "{List<ByteBuffer> l=new ArrayList<>();while(true){ByteBuffer b=ByteBuffer.allocateDirect(1<<20);l.add(b);}}}"
    ),
}
"""Memory outside of a runtime's own heap, or shared, which no limit of the kernel's counts."""
PRINTS = {
    "bash": "while :; do echo 0123456789012345678901234567890123456789; done",
    "c": '#include <stdio.h>\nint main(){for(;;)puts("0123456789012345678901234567890123456789");}',
    "cpp": '#include <cstdio>\nint main(){for(;;)std::puts("0123456789012345678901234567890123456789");}',
    "go": 'package main\nimport "os"\nfunc main(){for{os.Stdout.WriteString("0123456789012345678901234567890\\n")}}',
    "java": (
        "public class Main{public static void main(String[] a)"
        '{while(true)System.out.println("0123456789012345678901234567890");}}'
    ),
    "javascript": "const fs=require('fs');for(;;)fs.writeSync(1,'0123456789012345678901234567890\\n');",
    "lua": "while true do print('0123456789012345678901234567890') end",
    "perl": 'print "0123456789012345678901234567890\\n" while 1;',
    "php": '<?php while(true)echo "0123456789012345678901234567890\\n";',
    "ruby": "loop{puts '0123456789012345678901234567890'}",
    "rust": 'fn main(){loop{println!("0123456789012345678901234567890");}}',
    "typescript": "import * as fs from 'fs';for(;;)fs.writeSync(1,'0123456789012345678901234567890\\n');",
}
STARTS_THREADS = {
    "c": (
        "#include <pthread.h>\n#include <unistd.h>\nvoid*f(void*x){pause();return 0;}\n"
        "int main(){pthread_t t;int n=0;while(pthread_create(&t,0,f,0)==0)n++;return n>150?0:3;}"
    ),
    "go": 'package main\nimport "syscall"\nfunc main(){for i:=0;i<500;i++{go syscall.Pause()};select{}}',
    "java": (
        "public class Main{public static void main(String[] a)throws Exception{for(int i=0;i<2000;i++)"
        "new Thread(()->{try{Thread.sleep(100000);}catch(Exception e){}}).start();}}"
    ),
    "javascript": "const {Worker}=require('worker_threads');for(let i=0;i<100;i++)new Worker('for(;;);',{eval:true});",
    "perl": "for (1..300) { my $p = fork(); die 'no fork' unless defined $p; sleep 100 if !$p }",
    "ruby": "300.times{Thread.new{sleep 100}}; sleep 100",
}
"""More threads or processes than a program may have; each must end in bounded time, and none may succeed."""
