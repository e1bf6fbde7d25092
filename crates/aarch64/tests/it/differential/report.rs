//! Describes differences as text.

use std::fmt::Write as _;
use std::process::Command;

use fxscope_isa::{Reg, RegClass, StaticInst};

use crate::differential::exclude;
use crate::differential::machine::{Case, End, Outcome, State, WINDOW, WINDOW_BYTES};

/// A register or other place where two states differ.
pub struct Difference {
    pub place: String,
    pub before: String,
    pub ours: String,
    pub theirs: String,
}

/// Returns everything in which two outcomes of a case differ.
pub fn differences(case: &Case, ours: &Outcome, theirs: &Outcome) -> Vec<Difference> {
    let mut list = Vec::new();
    let mut add = |place: String, before: String, a: String, b: String| {
        if a != b {
            list.push(Difference { place, before, ours: a, theirs: b });
        }
    };
    add("end".into(), String::new(), format!("{:?}", ours.end), format!("{:?}", theirs.end));
    let (s, a, b) = (&case.state, &ours.state, &theirs.state);
    for i in 0..31 {
        add(format!("X{i}"), hex(s.x[i]), hex(a.x[i]), hex(b.x[i]));
    }
    add("SP".into(), hex(s.sp), hex(a.sp), hex(b.sp));
    add("PC".into(), hex(s.pc), hex(a.pc), hex(b.pc));
    add("NZCV".into(), flags(s.nzcv), flags(a.nzcv), flags(b.nzcv));
    // After a fault, it is unspecified how much of the access was done.
    if ours.end == End::Completed {
        let fpcr = |s: &State| hex((s.fpcr & exclude::FPCR).into());
        let fpsr = |s: &State| hex((s.fpsr & exclude::FPSR).into());
        add("FPCR".into(), fpcr(s), fpcr(a), fpcr(b));
        add("FPSR".into(), fpsr(s), fpsr(a), fpsr(b));
        for i in 0..32 {
            let text = |z: &State| vector(&z.z[i], case.vl);
            if a.z[i] != b.z[i] {
                add(format!("Z{i}"), text(s), text(a), text(b));
            }
        }
        for i in 0..16 {
            add(format!("P{i}"), hex(s.p[i]), hex(a.p[i]), hex(b.p[i]));
        }
        add("FFR".into(), hex(s.ffr), hex(a.ffr), hex(b.ffr));
        if let (Some(w), Some(a), Some(b)) = (&case.window, &ours.window, &theirs.window)
            && let Some(at) = (0..WINDOW_BYTES).find(|&i| a[i] != b[i])
        {
            let text = |w: &[u8]| w[at..WINDOW_BYTES.min(at + 16)].iter().map(|b| format!("{b:02x}")).collect();
            add(format!("memory at {:#x}", WINDOW + at as u64), text(&w[..]), text(&a[..]), text(&b[..]));
        }
    }
    list
}

fn hex(value: u64) -> String {
    format!("{value:#x}")
}

fn flags(nzcv: u64) -> String {
    format!("{nzcv:04b}")
}

/// Returns the vector as 64-bit words, highest first.
fn vector(z: &[u64; 8], vl: usize) -> String {
    z[..vl / 8].iter().rev().map(|w| format!("{w:016x}")).collect::<Vec<_>>().join("_")
}

fn value(state: &State, r: Reg, vl: usize) -> String {
    match r.class() {
        _ if r == Reg::SP => format!("SP = {:#x}", state.sp),
        RegClass::Gpr => format!("X{} = {:#x}", r.0, state.x[usize::from(r.0)]),
        RegClass::Vector => format!("Z{} = {}", r.0 - 32, vector(&state.z[usize::from(r.0) - 32], vl)),
        _ if r == Reg::FFR => format!("FFR = {:#x}", state.ffr),
        RegClass::Predicate => format!("P{} = {:#x}", r.0 - 64, state.p[usize::from(r.0) - 64]),
        RegClass::Flags => format!("NZCV = {:04b}", state.nzcv),
    }
}

/// Describes the case and its differences.
pub fn details(case: &Case, infos: &[StaticInst], differences: &[Difference]) -> String {
    let mut text = String::new();
    for line in disassemble(case) {
        let _ = writeln!(text, "    {line}");
    }
    let s = &case.state;
    let _ = writeln!(text, "    VL {} FPCR {:#x} FPSR {:#x} at {:#x}", 8 * case.vl, s.fpcr, s.fpsr, s.pc);
    let mut inputs: Vec<Reg> = Vec::new();
    for r in infos.iter().flat_map(|i| i.addr_srcs.iter().chain(i.srcs.iter())) {
        if !inputs.contains(&r) {
            inputs.push(r);
        }
    }
    for r in inputs {
        let _ = writeln!(text, "      in    {}", value(s, r, case.vl));
    }
    for d in differences {
        let _ = writeln!(text, "      {} was   {}", d.place, d.before);
        let _ = writeln!(text, "      {} ours  {}", d.place, d.ours);
        let _ = writeln!(text, "      {} QEMU  {}", d.place, d.theirs);
    }
    text
}

/// Returns the instructions of a case in assembly language, or as numbers without a disassembler.
pub fn disassemble(case: &Case) -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("words-{}", std::process::id()));
    let code: Vec<u8> = case.words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let text = std::fs::write(&path, code).and_then(|()| {
        let address = format!("--adjust-vma={:#x}", case.state.pc);
        Command::new("aarch64-linux-gnu-objdump")
            .args(["-D", "-b", "binary", "-m", "aarch64", &address])
            .arg(&path)
            .output()
    });
    // Without a disassembler the report shows numbers; a file left in the temporary directory is harmless.
    let _ = std::fs::remove_file(&path);
    let text = text.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let lines: Vec<String> =
        text.lines().filter(|l| l.starts_with("    4")).map(|l| l.trim().replace('\t', " ")).collect();
    if lines.len() == case.words.len() { lines } else { case.words.iter().map(|w| format!("{w:08x}")).collect() }
}
