/* Tries what no program in the jail may do, and prints the name of each act that succeeded. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int opens(const char *path, int flags) {
    int file = open(path, flags, 0600);
    if (file >= 0) close(file);
    return file >= 0;
}

static int runs(const char *path) {
    char *arguments[] = {(char *)path, NULL}, *environment[] = {NULL};
    execve(path, arguments, environment);
    return 0; /* it would not come back */
}

static int writes_and_runs(void) {
    char copy[65536];
    int from = open("/proc/self/exe", O_RDONLY), to = open("copy", O_CREAT | O_WRONLY, 0755);
    if (from < 0) from = open("/program/artefact/program", O_RDONLY);
    ssize_t size;
    while (from >= 0 && (size = read(from, copy, sizeof copy)) > 0)
        if (write(to, copy, size) != size) return 0;
    close(to);
    return from >= 0 && runs("./copy");
}

static int forks(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, 0);
    return child > 0;
}

static int maps_written_code(void) {
    int file = open("code", O_CREAT | O_RDWR, 0700);
    if (file < 0 || ftruncate(file, 4096)) return 0;
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) != MAP_FAILED;
}

static int holds_descriptors(void) { /* beyond input, output, errors */
    int count = 0;
    for (int number = 3; number < 1024; number++) count += fcntl(number, F_GETFD) != -1;
    return count;
}

#define TRY(name, act) do { errno = 0; if (act) puts(name); } while (0)

int main(void) {
    TRY("read /etc/passwd", opens("/etc/passwd", O_RDONLY));
    TRY("read /etc/shadow", opens("/etc/shadow", O_RDONLY));
    TRY("read /root", opens("/root", O_RDONLY | O_DIRECTORY));
    TRY("read /home", opens("/home", O_RDONLY | O_DIRECTORY));
    TRY("read /proc/self/environ", opens("/proc/self/environ", O_RDONLY));
    TRY("read /proc/1/environ", opens("/proc/1/environ", O_RDONLY));
    TRY("read /sys", opens("/sys/kernel", O_RDONLY | O_DIRECTORY));
    TRY("read all artefacts", opens("/store/artefacts", O_RDONLY | O_DIRECTORY));
    TRY("read the folder above", opens("..", O_RDONLY | O_DIRECTORY) && opens("../other", O_CREAT | O_WRONLY));
    TRY("write /tmp", opens("/tmp/rewardkit-wall-probe", O_CREAT | O_WRONLY));
    TRY("write /", opens("/rewardkit-wall-probe", O_CREAT | O_WRONLY));
    TRY("write the artefact", opens("/program/artefact/program", O_WRONLY));
    TRY("write into the artefact", opens("/program/artefact/more", O_CREAT | O_WRONLY));
    TRY("write a library", opens("/usr/lib/rewardkit-wall-probe", O_CREAT | O_WRONLY));
    TRY("open /dev/zero", opens("/dev/zero", O_RDONLY));
    TRY("open /dev/mem", opens("/dev/mem", O_RDONLY));
    TRY("map /dev/zero", opens("/dev/shm/x", O_CREAT | O_RDWR));
    TRY("fork", forks());
    TRY("vfork", ({ pid_t c = vfork(); if (c == 0) _exit(0); c > 0; }));
    TRY("a process group of its own", setpgid(0, 0) == 0);
    TRY("a session of its own", setsid() >= 0);
    TRY("a socket", socket(AF_INET, SOCK_STREAM, 0) >= 0);
    TRY("a datagram socket", socket(AF_UNIX, SOCK_DGRAM, 0) >= 0);
    TRY("ptrace", ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
    TRY("mount", mount("none", ".", "tmpfs", 0, "") == 0);
    TRY("unmount", umount2(".", MNT_DETACH) == 0);
    TRY("unshare", unshare(CLONE_NEWUSER) == 0);
    TRY("unshare files", unshare(CLONE_NEWNS) == 0);
    TRY("chroot", chroot(".") == 0);
    TRY("memfd", syscall(SYS_memfd_create, "m", 0) >= 0);
    TRY("io_uring", syscall(SYS_io_uring_setup, 1, NULL) >= 0 || errno == EFAULT);
    TRY("bpf", syscall(SYS_bpf, 0, NULL, 0) >= 0 || errno == EFAULT);
    TRY("keys", syscall(SYS_keyctl, 0, -3, 0, 0, 0) >= 0);
    TRY("userfaultfd", syscall(SYS_userfaultfd, 0) >= 0);
    TRY("perf", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0) >= 0 || errno == EFAULT);
    TRY("a node", mknod("node", S_IFCHR | 0600, 0x0105) == 0);
    TRY("a fifo", mkfifo("fifo", 0600) == 0);
    TRY("root", setuid(0) == 0 && geteuid() == 0 && opens("/store/artefacts", O_RDONLY | O_DIRECTORY));
    TRY("more memory than it may", ({ void *p = mmap(NULL, 1 << 20, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0); p != MAP_FAILED; }));
    TRY("descriptors", holds_descriptors() > 0);
    TRY("signal its parent", kill(getppid(), SIGSTOP) == 0 && getppid() != getpid() && 0);
    TRY("map written code", maps_written_code());
    TRY("run /usr/bin/true", runs("/usr/bin/true"));
    TRY("run a shell", runs("/bin/sh"));
    TRY("run what it wrote", writes_and_runs());
    puts("end");
    return 0;
}
