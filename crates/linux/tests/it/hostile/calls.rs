//! Programs that make system calls with plausible arguments, and the invariants that hold whatever they request. Used by the
//! seeded test next to this file and by the fuzz target `calls` in `fuzz`.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fxscope_linux::syscalls::TABLE;
use fxscope_linux::{Access, Code, Guest, Setup, Stdio};

// The fuzz target includes this file without the other tests.
#[allow(clippy::duplicate_mod)]
#[path = "../common/platform.rs"]
mod platform;

/// A system call by its index in the table, and the kinds and values of its arguments.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which call, see [`number`].
    pub which: u16,
    /// Kind and value of each argument, see [`argument`].
    pub arguments: [(u8, u64); 6],
}

/// Address of the program: one segment that is readable, writable and executable.
const BASE: u64 = 0x40_0000;
/// Bytes of headers before the code.
const HEADERS: u64 = 120;
/// Start of its data: words that alternate between pointers, lengths and small numbers, then paths.
const DATA: u64 = BASE + 0x1_0000;
/// Bytes of the words.
const WORDS: u64 = 0x4000;
/// Room for a path.
const PATH: u64 = 256;
/// Bytes of the segment.
const BYTES: u64 = 0x3_0000;
/// Maximum number of calls in a program: as many as there is room for.
const MAX_CALLS: usize = 0xe000 / (29 * 4);

/// Memory of the machine in bytes.
const MEMORY: u64 = 64 << 20;
/// Number of instructions after which a program that has not ended is abandoned.
const INSTRUCTIONS: u64 = 1_000_000;
/// Time limit of a program.
const PATIENCE: Duration = Duration::from_secs(20);

/// Paths passed to calls: devices, simulated files, memory of the machine and host files. `@` is the host folder that must not
/// change.
const PATHS: [&str; 32] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/shm",
    "/dev/shm/a",
    "/dev/shm/d",
    "/dev/shm/d/b",
    "/dev/stdin",
    "/dev/fd/1",
    "/dev/urandom",
    "/proc/self/fd/0",
    "/proc/self/fd/3",
    "/proc/self/mem",
    "/proc/self/exe",
    "/proc/self/cwd/a",
    "/proc/self/pagemap",
    "/proc/1000/fdinfo/4",
    "/proc/self/task/1001/stat",
    "/proc/self/smaps_rollup",
    "/dev/ptmx",
    "/dev/pts/0",
    "/dev/pts/1",
    "/sys/fs/cgroup/job/cgroup.procs",
    "/sys/devices/system/cpu/online",
    "@/victim",
    "@/folder",
    "@/folder/fresh",
    "/",
    ".",
    "..",
    "",
];

/// Files whose state must not change, in addition to those of the folder.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];

/// Returns the number of a call: usually one with a handler, occasionally any.
fn number(which: u16) -> u64 {
    if which % 64 == 63 {
        return u64::from(which);
    }
    let answered = TABLE.iter().filter(|call| call.handler.is_some());
    let ends = |name: &str| matches!(name, "exit" | "exit_group");
    let numbers: Vec<u64> = answered.filter(|call| !ends(call.name)).map(|call| call.number).collect();
    numbers[usize::from(which) % numbers.len()]
}

/// Returns an argument of a kind: a descriptor, a path, a pointer, a length, a set of flags, a number at an edge, or any value.
fn argument((kind, value): (u8, u64)) -> u64 {
    const EDGES: [u64; 8] = [0, 1, u64::MAX, i64::MAX as u64, 1 << 63, 1 << 48, (1 << 48) - 1, u32::MAX as u64];
    match kind % 12 {
        0 | 1 => value % 10,
        2 => -100_i64 as u64,
        3 | 4 => DATA + WORDS + value % PATHS.len() as u64 * PATH,
        5 | 6 => DATA + value % WORDS / 8 * 8,
        7 => value % 64,
        8 => 1 << (value % 32) | 1 << (value >> 8 & 31),
        9 => (value % 16) << 16,
        10 => EDGES[value as usize % EDGES.len()],
        _ => value,
    }
}

/// `movz` and `movk` for a whole register.
fn load(register: u32, value: u64) -> [u32; 4] {
    let part = |n: u32| (value >> (16 * n) & 0xffff) as u32;
    std::array::from_fn(|n| {
        let n = n as u32;
        (if n == 0 { 0xd280_0000 } else { 0xf280_0000 }) | n << 21 | part(n) << 5 | register
    })
}

/// Returns a program that makes these calls and then ends; `folder` replaces `@`.
fn program(calls: &[Call], folder: &Path) -> Vec<u8> {
    const SVC: u32 = 0xd400_0001;
    let mut code = Vec::new();
    for call in calls.iter().take(MAX_CALLS) {
        for (register, &value) in (0..).zip(&call.arguments) {
            code.extend(load(register, argument(value)));
        }
        code.extend(load(8, number(call.which)));
        code.push(SVC);
    }
    code.extend(load(0, 0));
    code.extend(load(8, 94));
    code.push(SVC);
    let mut file = Vec::new();
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file.extend([2, 0, 183, 0, 1, 0, 0, 0]); // ET_EXEC, EM_AARCH64
    file.extend([BASE + HEADERS, 64, 0].map(u64::to_le_bytes).concat()); // entry, program headers, no sections
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    file.extend([1, 0, 0, 0, 7, 0, 0, 0]); // PT_LOAD; read, write and execute
    file.extend([0, BASE, BASE, BYTES, BYTES, 0x1_0000].map(u64::to_le_bytes).concat());
    file.extend(code.iter().flat_map(|word| word.to_le_bytes()));
    file.resize((DATA - BASE) as usize, 0);
    for n in 0..WORDS / 8 {
        let word = match n % 8 {
            0 | 4 => DATA + n * 8 % WORDS,
            1 | 5 => 8 << (n / 8 % 16),
            2 => n / 8 % 8,
            3 => 0,
            6 => DATA + WORDS + n / 8 % PATHS.len() as u64 * PATH,
            _ => 1 << (n / 8 % 32),
        };
        file.extend(word.to_le_bytes());
    }
    for path in PATHS {
        let path = path.replace('@', folder.to_str().expect("UTF-8"));
        assert!(path.len() < PATH as usize, "room for {path}");
        let start = file.len();
        file.extend(path.as_bytes());
        file.resize(start + PATH as usize, 0);
    }
    file.resize(BYTES as usize, 0);
    file
}

/// A host folder that no program may change, and the devices.
pub struct Host {
    folder: tempfile::TempDir,
}

impl Default for Host {
    fn default() -> Host {
        let folder = tempfile::tempdir().expect("temporary folder");
        std::fs::create_dir(folder.path().join("folder")).expect("folder");
        std::fs::write(folder.path().join("victim"), "intact").expect("file");
        Host { folder }
    }
}

impl Host {
    fn state(&self) -> Vec<(PathBuf, Vec<u64>)> {
        let mut paths: Vec<PathBuf> = DEVICES.map(PathBuf::from).to_vec();
        for folder in [self.folder.path().to_owned(), self.folder.path().join("folder")] {
            let entries = std::fs::read_dir(&folder).expect("readable");
            paths.extend(entries.map(|entry| entry.expect("entry").path()).chain([folder]));
        }
        paths.sort();
        let state = |path: PathBuf| {
            let state = std::fs::symlink_metadata(&path).map(|m| {
                let (mode, owners) = (u64::from(m.mode()), u64::from(m.uid()) << 32 | u64::from(m.gid()));
                // Using a device changes its times.
                let modified = if m.is_file() || m.is_dir() { m.mtime_nsec() as u64 } else { 0 };
                vec![m.dev(), m.ino(), mode, m.nlink(), owners, m.rdev(), modified]
            });
            (path, state.unwrap_or_default())
        };
        paths.into_iter().map(state).collect()
    }

    /// Runs a program that makes these calls in a sandbox.
    ///
    /// # Panics
    /// When it changes the host, or does not end in time.
    pub fn run(&self, calls: &[Call]) {
        let before = self.state();
        let stream = || tempfile::tempfile().expect("temporary file").into();
        let mut platform = platform::platform(64);
        platform.memory_bytes = MEMORY;
        let mut setup = Setup::new(platform, "calls").expect("setup");
        setup.stdio = Stdio { input: stream(), output: stream(), error: stream() };
        setup.access = Access::sandbox();
        let mut process = Guest::new(Path::new("/calls"), &program(calls, self.folder.path()), setup).expect("starts");
        let start = Instant::now();
        let mut code: Code = Code::of(&process);
        process.run_functional(&mut code, INSTRUCTIONS);
        assert!(start.elapsed() < PATIENCE, "{calls:?}");
        drop(process);
        assert_eq!(self.state(), before, "{calls:?}");
    }
}
