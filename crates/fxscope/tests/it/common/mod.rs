//! Runs of the command, and programs small enough to be written as words.

// Each test file uses some of this.
#![allow(dead_code)]

pub mod kanata;
pub mod timed;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// `fxscope` with arguments, without a terminal, in a folder.
pub fn fxscope(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fxscope"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub fn output(folder: &Path, args: &[&str]) -> Output {
    fxscope(folder, args).output().expect("fxscope starts")
}

/// Returns exit status and standard error.
pub fn failure(folder: &Path, args: &[&str]) -> (i32, String) {
    let output = output(folder, args);
    let error = String::from_utf8(output.stderr).expect("messages are text");
    assert!(!error.contains("panicked"), "{error}");
    (output.status.code().expect("ended by itself"), error)
}

/// Returns the path of a prebuilt kernel.
pub fn kernel(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/prebuilt").join(name);
    path.to_str().expect("UTF-8 path").to_owned()
}

/// Address of the code in [`elf`].
pub const ENTRY: u64 = 0x40_0000 + 120;

/// A static AArch64 program of one segment: `code` from its entry point on.
pub fn elf(code: &[u32]) -> Vec<u8> {
    let bytes = 120 + 4 * code.len() as u64;
    let mut file = Vec::new();
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file.extend([2, 0, 183, 0, 1, 0, 0, 0]); // ET_EXEC, EM_AARCH64
    file.extend([ENTRY, 64, 0].map(u64::to_le_bytes).concat()); // entry, program headers, no sections
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]); // PT_LOAD, readable and executable
    file.extend([0, 0x40_0000, 0x40_0000, bytes, bytes, 0x1_0000].map(u64::to_le_bytes).concat());
    file.extend(code.iter().flat_map(|word| word.to_le_bytes()));
    file
}

/// `mov Xn, #value`.
pub const fn mov(n: u32, value: u16) -> u32 {
    0xd280_0000 | (value as u32) << 5 | n
}

pub const SVC: u32 = 0xd400_0001;
/// `b .`
pub const FOREVER: u32 = 0x1400_0000;
/// `ldr x0, [x0]`
pub const LOAD: u32 = 0xf940_0000;

/// `exit(status)`.
pub const fn exit(status: u16) -> [u32; 3] {
    [mov(0, status), mov(8, 93), SVC]
}

/// Copies the start of standard input, at most 64 bytes, to standard output and standard error; exits with 7.
pub fn echo() -> Vec<u32> {
    const SUB_SP_64: u32 = 0xd101_03ff; // sub sp, sp, #64
    const MOV_X1_SP: u32 = 0x9100_03e1; // mov x1, sp
    const MOV_X9_X0: u32 = 0xaa00_03e9; // mov x9, x0
    const MOV_X2_X9: u32 = 0xaa09_03e2; // mov x2, x9
    let read = [SUB_SP_64, mov(0, 0), MOV_X1_SP, mov(2, 64), mov(8, 63), SVC, MOV_X9_X0];
    let write = |fd| [mov(0, fd), MOV_X1_SP, MOV_X2_X9, mov(8, 64), SVC];
    [&read[..], &write(1), &write(2), &exit(7)].concat()
}

/// Writes a program into a folder.
pub fn place(folder: &Path, name: &str, file: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, file).expect("writable");
    path
}

/// Parses the output of `--json`.
pub fn json(text: &[u8]) -> serde_json::Value {
    serde_json::from_slice(text).expect("JSON")
}

/// Compiles a C program into a folder; returns its path.
pub fn compile(folder: &Path, name: &str, flags: &[&str], source: &str) -> String {
    compile_by(folder, name, ("gcc", "c"), flags, source)
}

/// Compiles a C++ program into a folder; returns its path.
pub fn compile_cpp(folder: &Path, name: &str, flags: &[&str], source: &str) -> String {
    compile_by(folder, name, ("g++", "cpp"), flags, source)
}

/// Compiles a program into a folder, from sources with this extension; returns its path.
fn compile_by(folder: &Path, name: &str, by: (&str, &str), flags: &[&str], source: &str) -> String {
    let (compiler, extension) = by;
    let file = place(folder, &format!("{name}.{extension}"), source.as_bytes());
    let program = folder.join(name);
    let command = format!("aarch64-linux-gnu-{compiler}");
    // Libraries among the flags must come after the files that need them.
    let status = Command::new(&command).arg("-o").args([&program, &file]).args(flags).status();
    let status =
        status.unwrap_or_else(|e| panic!("cannot start {command} ({e}): apt-get install {compiler}-aarch64-linux-gnu"));
    assert!(status.success());
    program.to_str().expect("UTF-8 path").to_owned()
}
