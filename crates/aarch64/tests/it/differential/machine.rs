//! The initial and final state of a case, and its execution by our processor.
//!
//! Address layout and structures are those of `runner.c`.

use bytemuck::{Pod, Zeroable};
use fxscope_aarch64::table::{self, Ctx};
use fxscope_aarch64::{Block, Cpu, Trap, Vreg};
use fxscope_guestmem::{Memory, Prot, Segment};
use fxscope_isa::StaticInst;

/// Bytes of each of the two mapped regions.
pub const PAGE: u64 = 0x10000;
/// A page of data, reachable with 32-bit vector addresses; unmapped around it on both sides.
pub const SCRATCH: u64 = 0x4000_0000;
/// A page of `BRK` instructions in which the cases are placed.
pub const CODE: u64 = 0x4002_0000;
/// Bytes of the data window.
pub const WINDOW_BYTES: usize = 0x1000;
/// The end of the scratch page: the only data that cases access and that is compared.
pub const WINDOW: u64 = WINDOW_END - WINDOW_BYTES as u64;
/// The first unmapped address after the window.
pub const WINDOW_END: u64 = SCRATCH + PAGE;
/// Maximum number of instructions in a case.
pub const WORDS: usize = 16;

const BRK: u32 = 0xd420_0000;

/// The registers of a thread.
#[derive(Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct State {
    pub x: [u64; 31],
    pub sp: u64,
    pub pc: u64,
    pub nzcv: u64,
    pub fpcr: u32,
    pub fpsr: u32,
    pub z: [[u64; 8]; 32],
    pub p: [u64; 16],
    pub ffr: u64,
}

/// Contents of the data window.
pub type Window = Box<[u8; WINDOW_BYTES]>;

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It ran to the `BRK` after it, or branched elsewhere.
    Completed,
    /// An instruction was undefined.
    Undefined,
    /// A breakpoint instruction.
    Breakpoint,
    /// An access outside the mapped regions.
    Memory,
    /// A misaligned access.
    Misaligned,
    /// Something that a case must not do: a system call or the like, an endless loop.
    Other,
}

/// The result of a case.
#[derive(Clone)]
pub struct Outcome {
    pub end: End,
    pub state: State,
    /// The window, if the case accesses memory.
    pub window: Option<Window>,
}

/// Instructions at an address, and their initial state (`state.pc` is the address).
#[derive(Clone)]
pub struct Case {
    pub vl: usize,
    pub words: Vec<u32>,
    pub state: State,
    pub window: Option<Window>,
}

impl Case {
    /// Returns the address after the code.
    pub fn end(&self) -> u64 {
        self.state.pc + 4 * self.words.len() as u64
    }

    /// Returns the decoder's description of each instruction; `None` when one does not decode.
    pub fn infos(&self) -> Option<Vec<StaticInst>> {
        let at = |(i, &word): (usize, &u32)| {
            let c = Ctx { pc: self.state.pc + 4 * i as u64, vl: self.vl };
            table::decode(word, &c).map(|d| d.info)
        };
        self.words.iter().enumerate().map(at).collect()
    }
}

/// Our processor with the two regions mapped.
pub struct Machine {
    cpu: Cpu,
    mem: Memory,
}

impl Machine {
    pub fn new() -> Machine {
        let mut mem = Memory::new(8 * PAGE).expect("reserve guest memory");
        mem.map(SCRATCH, PAGE, Prot::RW, Segment::Mmap).expect("map the data page");
        mem.map(CODE, PAGE, Prot::RX, Segment::Text).expect("map the code page");
        let code: Vec<u8> = std::iter::repeat_n(BRK.to_le_bytes(), PAGE as usize / 4).flatten().collect();
        mem.write_privileged(CODE, &code).expect("fill the code page");
        Machine { cpu: Cpu::new(64), mem }
    }

    /// Runs a case. Also returns its dynamic stream, and a text if it violated an invariant of the processor.
    pub fn run(&mut self, case: &Case) -> (Outcome, Vec<u64>, Option<String>) {
        let decoded = case.words.iter().enumerate().map(|(i, &word)| {
            let c = Ctx { pc: case.state.pc + 4 * i as u64, vl: case.vl };
            table::decode(word, &c).unwrap_or_else(|| table::undecodable(&c))
        });
        let (insts, infos) = decoded.map(|d| (d.inst, d.info)).unzip();
        let block = Block::new(case.state.pc, insts, infos, case.vl);
        self.run_by(case, |cpu, mem| block.run(cpu, mem).trap)
    }

    /// Does what [`Machine::run`] does, with another way to execute the code at `cpu.pc`. It returns why the case stopped, if it did
    /// so before its end.
    pub fn run_by(
        &mut self,
        case: &Case,
        execute: impl FnOnce(&mut Cpu, &mut Memory) -> Option<Trap>,
    ) -> (Outcome, Vec<u64>, Option<String>) {
        let cpu = &mut self.cpu;
        load(cpu, case);
        if let Some(window) = &case.window {
            self.mem.write(WINDOW, &window[..]).expect("the window is mapped");
        }
        let code: Vec<u8> = case.words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.mem.write_privileged(case.state.pc, &code).expect("the code page is mapped");
        let trap = execute(cpu, &mut self.mem);

        let brk = BRK.to_le_bytes().repeat(case.words.len());
        self.mem.write_privileged(case.state.pc, &brk).expect("the code page is mapped");
        let window = case.window.as_ref().map(|_| {
            let mut window = Box::new([0; WINDOW_BYTES]);
            self.mem.read(WINDOW, &mut window[..]).expect("the window is mapped");
            window
        });
        let end = match trap {
            None => End::Completed,
            Some(Trap::Undefined) => End::Undefined,
            Some(Trap::Breakpoint(_)) => End::Breakpoint,
            Some(Trap::Memory(_)) => End::Memory,
            Some(Trap::Misaligned(_)) => End::Misaligned,
            Some(Trap::SystemCall | Trap::CodeChanged | Trap::Window(_) | Trap::WaitForEvent | Trap::SendEvent) => {
                End::Other
            }
        };
        (Outcome { end, state: save(cpu), window }, cpu.stream().to_vec(), broken_invariant(cpu))
    }
}

fn load(cpu: &mut Cpu, case: &Case) {
    let s = &case.state;
    cpu.x = [0; 64];
    cpu.x[..31].copy_from_slice(&s.x);
    cpu.x[usize::from(Cpu::SP)] = s.sp;
    // A value written to the sink must never be read.
    cpu.x[usize::from(Cpu::SINK)] = 0x5afe_5afe_5afe_5afe;
    cpu.z = s.z.map(Vreg);
    cpu.p = s.p;
    cpu.ffr = s.ffr;
    cpu.nzcv = s.nzcv as u8;
    cpu.fp.fpcr = s.fpcr;
    cpu.fp.fpsr = s.fpsr;
    cpu.pc = s.pc;
    cpu.vl = case.vl;
    cpu.monitor = None;
    // As on A64FX: lines of 256 bytes, which DC ZVA zeroes.
    cpu.id.ctr = 0x8666_8006;
    cpu.id.dczid = 6;
}

fn save(cpu: &Cpu) -> State {
    State {
        x: cpu.x[..31].try_into().expect("31 registers"),
        sp: cpu.x[usize::from(Cpu::SP)],
        pc: cpu.pc,
        nzcv: u64::from(cpu.nzcv),
        fpcr: cpu.fp.fpcr,
        fpsr: cpu.fp.fpsr,
        z: cpu.z.map(|z| z.0),
        p: cpu.p,
        ffr: cpu.ffr,
    }
}

fn broken_invariant(cpu: &Cpu) -> Option<String> {
    let beyond_p = |p: u64| p & !cpu.p_mask() != 0;
    if cpu.x(Cpu::XZR) != 0 {
        return Some("the zero register is not zero".into());
    }
    if let Some(n) = cpu.z.iter().position(|z| z.0[cpu.vl / 8..].iter().any(|&w| w != 0)) {
        return Some(format!("Z{n} has bits beyond the vector length"));
    }
    if let Some(n) = cpu.p.iter().position(|&p| beyond_p(p)) {
        return Some(format!("P{n} has bits beyond the vector length"));
    }
    if beyond_p(cpu.ffr) {
        return Some("FFR has bits beyond the vector length".into());
    }
    if cpu.nzcv > 15 { Some(format!("NZCV is {:#x}", cpu.nzcv)) } else { None }
}
