//! What the fuzz targets share: a guest address space and the registers to start from.
//!
//! ```text
//! cargo +nightly fuzz run decode
//! cargo +nightly fuzz run exec
//! cargo +nightly fuzz run elf
//! cargo +nightly fuzz run machine
//! ```

use std::cell::RefCell;

use fxscope_aarch64::cpu::stream_words;
use fxscope_aarch64::memory::PAGE;
use fxscope_aarch64::{Block, Cpu, Memory, Outcome, Prot, Segment};
use libfuzzer_sys::arbitrary::{self, Arbitrary};

/// Address of the page of code.
pub const CODE: u64 = 0x1_0000;
/// Address of the writable pages, behind an unmapped one.
pub const DATA: u64 = 0x3_0000;
/// Bytes of the writable pages; the page behind them is read-only.
pub const DATA_BYTES: u64 = 2 * PAGE;

/// Registers as the fuzzer chooses them, few bytes for many registers.
#[derive(Arbitrary, Debug)]
pub struct Registers {
    vl: u8,
    /// General registers in turn: an offset into the data pages or, when the number is odd, as it is.
    general: [u64; 4],
    /// 64-bit parts of vector registers in turn.
    vector: [u64; 5],
    predicate: [u64; 3],
    ffr: u64,
    flags: u8,
    fpcr: u32,
}

impl Registers {
    /// Vector length in bytes.
    #[must_use]
    pub fn vl(&self) -> usize {
        [16, 32, 64][usize::from(self.vl) % 3]
    }

    /// A processor in this state, at the start of the code.
    #[must_use]
    pub fn cpu(&self) -> Cpu {
        let mut cpu = Cpu::new(self.vl());
        for (i, x) in cpu.x[..=usize::from(Cpu::SP)].iter_mut().enumerate() {
            let value = self.general[i % self.general.len()].rotate_left(i as u32);
            *x = if value & 1 == 0 { DATA + value % (DATA_BYTES + PAGE) } else { value };
        }
        let parts = self.vl() / 8;
        for (i, z) in cpu.z.iter_mut().enumerate() {
            z.0[..parts].iter_mut().enumerate().for_each(|(j, part)| *part = self.vector[(i + j) % self.vector.len()]);
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

/// Calls `f` with an address space whose code page holds `code`. Its data pages keep what earlier calls wrote.
pub fn with_memory<R>(code: &[u32], f: impl FnOnce(&mut Memory) -> R) -> R {
    thread_local! {
        static MEMORY: RefCell<Memory> = RefCell::new(address_space());
    }
    MEMORY.with_borrow_mut(|mem| {
        mem.discard(CODE, CODE + PAGE);
        let bytes: &[u8] = bytemuck::cast_slice(&code[..code.len().min(PAGE as usize / 4)]);
        mem.write_privileged(CODE, bytes).expect("the code page is mapped");
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

/// Checks what must hold after a block, whatever it was.
///
/// # Panics
/// When it does not hold.
pub fn check(cpu: &Cpu, block: &Block, outcome: &Outcome) {
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
