//! A guest address space of a few pages with gaps, registers that point at its edges, and the invariants of any code that runs
//! there. Used by the seeded test next to this file and by the fuzz targets in `fuzz`.

use std::cell::RefCell;

use fxscope_aarch64::cpu::stream_words;
use fxscope_aarch64::table::encodings;
use fxscope_aarch64::{Cpu, Engine as _, Interpreter, Outcome, StaticBlock, Trap};
use fxscope_guestmem::{Memory, Prot, Segment};
use fxscope_guestmem::{PAGE, USER_END};

/// Address of the page of code.
pub const CODE: u64 = 0x1_0000;
/// Address of the writable pages, after an unmapped one.
pub const DATA: u64 = 0x3_0000;
/// Bytes of the writable pages; the page after them is read-only, and the one after that unmapped.
pub const DATA_BYTES: u64 = 2 * PAGE;
/// Maximum number of blocks executed: random code may loop.
const BLOCKS: usize = 100;

/// Where access rights change, and where address arithmetic wraps.
const EDGES: [u64; 8] =
    [0, CODE, CODE + PAGE, DATA, DATA + DATA_BYTES, DATA + DATA_BYTES + PAGE, USER_END, 0x5a00_0000_0000_0000 | DATA];

/// Initial register values: few values for many registers.
#[derive(Debug)]
pub struct Start {
    /// Vector length by number.
    pub vl: u8,
    /// General-purpose registers in turn; see [`address`].
    pub general: [u64; 4],
    /// 64-bit parts of vector registers in turn, as they are or as addresses.
    pub vector: [u64; 5],
    /// Predicate registers in turn.
    pub predicate: [u64; 3],
    /// The first-fault register.
    pub ffr: u64,
    /// Flags.
    pub flags: u8,
    /// FPCR.
    pub fpcr: u32,
}

/// Interprets a number as an address: an offset into the data pages, an address at an edge, or the number itself, depending on
/// its lowest bits.
fn address(value: u64) -> u64 {
    match value & 3 {
        0 => DATA + value % (DATA_BYTES + PAGE),
        1 => EDGES[(value >> 2) as usize % EDGES.len()].wrapping_add((value >> 8) % 600).wrapping_sub(300),
        2 => EDGES[(value >> 2) as usize % EDGES.len()].wrapping_sub(1 << (value >> 8 & 15)),
        _ => value,
    }
}

impl Start {
    /// Vector length in bytes.
    #[must_use]
    pub fn vl(&self) -> usize {
        [16, 32, 64][usize::from(self.vl) % 3]
    }

    /// Returns a processor in this state, at the start of the code.
    #[must_use]
    pub fn cpu(&self) -> Cpu {
        let mut cpu = Cpu::new(self.vl());
        for (i, x) in cpu.x[..=usize::from(Cpu::SP)].iter_mut().enumerate() {
            *x = address(self.general[i % self.general.len()].rotate_left(i as u32));
        }
        let parts = self.vl() / 8;
        for (i, z) in cpu.z.iter_mut().enumerate() {
            for (j, part) in z.0[..parts].iter_mut().enumerate() {
                let value = self.vector[(i + j) % self.vector.len()];
                *part = if i % 2 == 0 { value } else { address(value) };
            }
        }
        for i in 0..16 {
            cpu.set_p(i, self.predicate[usize::from(i) % self.predicate.len()].rotate_left(i.into()));
        }
        cpu.ffr = self.ffr & cpu.p_mask();
        cpu.nzcv = self.flags & 15;
        cpu.fp.fpcr = self.fpcr & 0x07c8_0000;
        cpu.id.dczid = 6;
        cpu.pc = CODE;
        cpu
    }
}

/// Returns an instruction word of encoding number `row` with these operand bits; any word if the number is too large.
#[must_use]
pub fn word(row: u16, bits: u32) -> u32 {
    thread_local! {
        static PATTERNS: Vec<(u32, u32)> = encodings().map(|row| (row.pattern.mask, row.pattern.value)).collect();
    }
    PATTERNS.with(|all| match all.get(usize::from(row) % (all.len() + all.len() / 16 + 1)) {
        Some((mask, value)) => bits & !mask | value,
        None => bits,
    })
}

/// Calls `f` with an address space whose code page holds `code`. Its data pages keep what earlier calls wrote.
pub fn with_memory<R>(code: &[u32], f: impl FnOnce(&mut Memory) -> R) -> R {
    thread_local! {
        static MEMORY: RefCell<Memory> = RefCell::new(address_space());
    }
    MEMORY.with_borrow_mut(|mem| {
        mem.discard(CODE, CODE + PAGE);
        let bytes: Vec<u8> = code.iter().take(PAGE as usize / 4).flat_map(|word| word.to_le_bytes()).collect();
        mem.write_privileged(CODE, &bytes).expect("the code page is mapped");
        f(mem)
    })
}

fn address_space() -> Memory {
    let mut mem = Memory::new(16 * PAGE).expect("reserve guest memory");
    mem.map(CODE, PAGE, Prot::RX, Segment::Text).expect("map code");
    mem.map(DATA, DATA_BYTES, Prot::RW, Segment::Data).expect("map data");
    mem.map(DATA + DATA_BYTES, PAGE, Prot::R, Segment::Text).expect("map read-only data");
    mem
}

/// Executes `code` from its start until it leaves mapped code or has run long enough. Returns the number of executed
/// instructions.
///
/// # Panics
/// When an invariant does not hold (see [`check`]), or pages without write permission have changed.
pub fn run(start: &Start, code: &[u32]) -> usize {
    let mut cpu = start.cpu();
    let mut engine = Interpreter::new(cpu.vl);
    with_memory(code, |mem| {
        let mut executed = 0;
        let mut text = vec![0; PAGE as usize];
        mem.read(CODE, &mut text).expect("code is readable");
        for _ in 0..BLOCKS {
            let Ok(id) = engine.at(cpu.pc, mem) else { break };
            let outcome = engine.run(id, &mut cpu, mem);
            check(&cpu, engine.block(id), &outcome);
            executed += outcome.executed;
            match outcome.trap {
                None | Some(Trap::SystemCall | Trap::Window(_) | Trap::WaitForEvent | Trap::SendEvent) => {}
                Some(Trap::CodeChanged) => engine.flush(cpu.vl),
                // Continue after it, as a signal handler can.
                Some(_) => cpu.pc = cpu.pc.wrapping_add(4),
            }
        }
        let mut after = vec![0; PAGE as usize];
        mem.read(CODE, &mut after).expect("code is readable");
        assert!(text == after, "a store has changed code without permission");
        mem.read(DATA + DATA_BYTES, &mut after).expect("readable");
        assert!(after.iter().all(|&byte| byte == 0), "a store has changed read-only data");
        executed
    })
}

/// Checks the invariants that hold after any block.
///
/// # Panics
/// When one does not hold.
pub fn check(cpu: &Cpu, block: &StaticBlock, outcome: &Outcome) {
    let parts = cpu.vl / 8;
    assert!(cpu.z.iter().all(|z| z.0[parts..].iter().all(|&part| part == 0)), "vector bits beyond the vector length");
    let beyond = !cpu.p_mask();
    assert!(cpu.p.iter().all(|p| p & beyond == 0), "predicate bits beyond the vector length");
    assert!(cpu.ffr & beyond == 0, "FFR bits beyond the vector length");
    assert!(cpu.x(Cpu::XZR) == 0, "the zero register changed");
    assert!(cpu.nzcv < 16, "NZCV out of range");
    let ops = block.infos[..outcome.executed].iter().filter_map(|info| info.mem);
    let promised: usize = ops.map(|op| stream_words(&op, cpu.vl)).sum();
    assert!(cpu.stream().len() >= promised, "fewer words in the stream than promised");
    assert!(outcome.trap.is_some() || cpu.stream().len() == promised, "more words in the stream than promised");
}
