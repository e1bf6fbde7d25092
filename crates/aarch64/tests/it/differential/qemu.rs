//! Execution of cases under QEMU.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bytemuck::{Pod, Zeroable};

use crate::differential::machine::{Case, End, Outcome, State, WINDOW_BYTES, WORDS};

const COMPILER: &str = "aarch64-linux-gnu-gcc";
const QEMU: &str = "qemu-aarch64";
const INSTALL: &str = "apt-get install qemu-user gcc-aarch64-linux-gnu";

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Input {
    state: State,
    words: [u32; WORDS],
    count: u32,
    memory: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Output {
    state: State,
    signal: u32,
    code: u32,
    address: u64,
}

/// The runner program, built for this test process.
pub struct Qemu {
    runner: PathBuf,
}

impl Qemu {
    /// Builds the runner.
    pub fn new(tag: &str) -> Qemu {
        for tool in [COMPILER, QEMU] {
            let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            assert!(found.is_ok_and(|s| s.success()), "{tool} is missing; this test needs: {INSTALL}");
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../aarch64/tests/it/differential/runner.c");
        let runner = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("runner-{tag}-{}", std::process::id()));
        let flags = ["-O2", "-nostdlib", "-static", "-ffreestanding", "-fno-stack-protector", "-Wall", "-Werror"];
        let built = Command::new(COMPILER)
            .args(flags)
            .arg("-fno-tree-loop-distribute-patterns")
            .arg("-o")
            .args([&runner, &source])
            .status();
        assert!(built.is_ok_and(|s| s.success()), "{COMPILER} cannot build the runner; it needs: {INSTALL}");
        Qemu { runner }
    }

    /// Runs cases of one vector length, in order.
    pub fn run(&self, vl: usize, cases: &[&Case]) -> Vec<Outcome> {
        let input = self.runner.with_extension("in");
        let output = self.runner.with_extension("out");
        write_cases(&input, vl, cases).expect("write the input of the runner");
        let status = Command::new(QEMU)
            .args(["-cpu", "a64fx"])
            .arg(&self.runner)
            .stdin(File::open(&input).expect("open the input of the runner"))
            .stdout(File::create(&output).expect("create the output of the runner"))
            .status()
            .expect("start QEMU");
        let bytes = fs::read(&output).expect("read the output of the runner");
        let outcomes = read_outcomes(&bytes, cases);
        if !status.success() || outcomes.len() != cases.len() {
            let words = cases.get(outcomes.len()).map(|c| format!("{:08x?}", c.words));
            panic!("the runner ended with {status} at case {} of {}, words {words:?}", outcomes.len(), cases.len());
        }
        outcomes
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        for path in [self.runner.clone(), self.runner.with_extension("in"), self.runner.with_extension("out")] {
            // The directory is temporary: a file left there is harmless.
            let _ = fs::remove_file(path);
        }
    }
}

fn write_cases(path: &Path, vl: usize, cases: &[&Case]) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(&(vl as u64).to_le_bytes())?;
    for case in cases {
        let mut words = [0; WORDS];
        words[..case.words.len()].copy_from_slice(&case.words);
        let memory = u32::from(case.window.is_some());
        let input = Input { state: case.state, words, count: case.words.len() as u32, memory };
        file.write_all(bytemuck::bytes_of(&input))?;
        if let Some(window) = &case.window {
            file.write_all(&window[..])?;
        }
    }
    file.flush()
}

fn read_outcomes(mut bytes: &[u8], cases: &[&Case]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for case in cases {
        let Some((head, rest)) = bytes.split_at_checked(size_of::<Output>()) else { break };
        let output: Output = bytemuck::pod_read_unaligned(head);
        bytes = rest;
        let mut window = None;
        if case.window.is_some() {
            let Some((head, rest)) = bytes.split_at_checked(WINDOW_BYTES) else { break };
            window = Some(Box::new(head.try_into().expect("length was just split off")));
            bytes = rest;
        }
        outcomes.push(Outcome { end: end_of(case, &output), state: output.state, window });
    }
    outcomes
}

/// Returns how a case ended, from the signal that ended it.
fn end_of(case: &Case, out: &Output) -> End {
    const SIGILL: u32 = 4;
    const SIGTRAP: u32 = 5;
    const SIGBUS: u32 = 7;
    const SIGSEGV: u32 = 11;
    let inside = (case.state.pc..case.end()).contains(&out.state.pc);
    match out.signal {
        SIGTRAP if inside => End::Breakpoint,
        SIGTRAP => End::Completed,
        // A branch to an address that cannot be fetched: the branch itself completed.
        SIGSEGV | SIGBUS if !inside => End::Completed,
        SIGILL => End::Undefined,
        SIGSEGV => End::Memory,
        SIGBUS => End::Misaligned,
        _ => End::Other,
    }
}
