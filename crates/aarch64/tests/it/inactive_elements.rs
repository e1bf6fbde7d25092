//! Inactive elements touch nothing: no memory changes, no page is allocated, nothing faults.

use fxscope_aarch64::table::{self, Ctx, Encoding};
use fxscope_aarch64::{Block, Cpu};
use fxscope_guestmem::PAGE;
use fxscope_guestmem::{Memory, Prot, Segment};
use fxscope_isa::{Access, MemOp, RegClass, Shape, StaticInst};

const CODE: u64 = 0x1_0000;
const DATA: u64 = 0x2_0000;
const VL: usize = 64;
/// Words tried for each row.
const TRIES: u64 = 400;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.0 >> 32 ^ self.0 << 17
    }
}

/// Returns a processor whose access `info` is at `base`: contiguous elements from there on, or one every 16 bytes.
fn cpu(info: &StaticInst, base: u64, predicate: u64) -> Cpu {
    let mut cpu = Cpu::new(VL);
    cpu.p = [predicate; 16];
    cpu.ffr = u64::MAX;
    for z in &mut cpu.z {
        z.0 = [0xa5a5_a5a5_a5a5_a5a5; 8];
    }
    let general: Vec<_> = info.addr_srcs.iter().filter(|r| r.class() == RegClass::Gpr).collect();
    let narrow = info.mem.is_some_and(|op| op.reg_esize < 8);
    for z in info.addr_srcs.iter().filter(|r| r.class() == RegClass::Vector) {
        let from = if general.is_empty() { base } else { 0 };
        cpu.z[usize::from(z.0) - 32].0 = std::array::from_fn(|i| {
            let element = |i: usize| from + 16 * i as u64;
            if narrow { element(2 * i) | element(2 * i + 1) << 32 } else { element(i) }
        });
    }
    for (i, r) in general.iter().enumerate() {
        cpu.x[usize::from(r.0)] = if i == 0 { base } else { 0 };
    }
    cpu
}

/// Returns memory of one page at `DATA`, already written, with nothing around it.
fn memory() -> Memory {
    let mut mem = Memory::new(8 * PAGE).expect("reserve guest memory");
    mem.map(DATA, PAGE, Prot::RW, Segment::Data).expect("map data");
    mem.write(DATA, &vec![1; PAGE as usize]).expect("the data page is mapped");
    mem
}

/// Returns a word of the row that accesses memory under a mask, with its description.
fn word(row: &Encoding, rng: &mut Rng) -> Option<(u32, StaticInst, MemOp)> {
    (0..TRIES).find_map(|_| {
        let word = rng.next() as u32 & !row.pattern.mask | row.pattern.value;
        let info = row.matches(word).then(|| table::decode(word, &Ctx { pc: CODE, vl: VL }))??.info;
        let op = info.mem.filter(|op| op.shape != Shape::Single)?;
        let general = || info.addr_srcs.iter().filter(|r| r.class() == RegClass::Gpr);
        let distinct = general().count() < 2 || general().next() != general().nth(1);
        let also_data =
            info.addr_srcs.iter().any(|r| r.class() == RegClass::Vector && info.srcs.iter().any(|s| s == r));
        (distinct && !also_data).then_some((word, info, op))
    })
}

/// Runs the word; returns the dynamic stream of its access, or `None` if it trapped.
fn run(word: u32, cpu: &mut Cpu, mem: &mut Memory) -> Option<Vec<u64>> {
    let d = table::decode(word, &Ctx { pc: CODE, vl: VL }).expect("it decoded before");
    let block = Block::new(CODE, vec![d.inst], vec![d.info], VL);
    block.run(cpu, mem).trap.is_none().then(|| cpu.stream().to_vec())
}

#[test]
fn an_access_without_active_elements_touches_nothing_at_any_address() {
    let mut rng = Rng(1);
    let mut checked = 0;
    for row in table::encodings() {
        let Some((word, info, _)) = word(row, &mut rng) else { continue };
        // Never mapped, mapped but never touched, and across the end of mapped memory.
        for base in [64 * PAGE, DATA + 2 * PAGE, DATA + PAGE - 8] {
            let mut mem = memory();
            mem.map(DATA + 2 * PAGE, PAGE, Prot::RW, Segment::Mmap).expect("map more");
            mem.take_fresh();
            let backed = mem.backed_bytes();
            let done = run(word, &mut cpu(&info, base, 0), &mut mem);
            assert!(done.is_some(), "{}: {word:08x} faults at {base:#x}", row.name);
            assert!(!mem.has_fresh() && mem.backed_bytes() == backed, "{}: {word:08x} allocates a page", row.name);
            let mut page = vec![0; PAGE as usize];
            mem.read(DATA, &mut page).expect("mapped");
            assert!(page.iter().all(|&byte| byte == 1), "{}: {word:08x} writes at {base:#x}", row.name);
            checked += 1;
        }
    }
    assert!(checked > 3 * 150, "only {checked} cases checked");
}

#[test]
fn the_stream_has_the_addresses_of_all_elements_of_gathers_and_scatters() {
    let mut rng = Rng(2);
    let mut checked = 0;
    for row in table::encodings() {
        let Some((word, info, op)) = word(row, &mut rng) else { continue };
        let scaled = info.addr_srcs.iter().any(|r| r.class() == RegClass::Gpr);
        if op.shape != Shape::Indexed || scaled || info.addr_srcs.iter().all(|r| r.class() != RegClass::Vector) {
            continue;
        }
        let stream = |predicate| run(word, &mut cpu(&info, DATA + 0x100, predicate), &mut memory()).expect("mapped");
        let (all, none) = (stream(u64::MAX), stream(0));
        assert_eq!((all[0] != 0, none[0]), (true, 0), "{}: masks", row.name);
        assert_eq!(all[1..], none[1..], "{}: {word:08x}: addresses depend on the mask", row.name);
        checked += 1;
    }
    assert!(checked > 10, "only {checked} encodings checked");
}

#[test]
fn stores_at_the_edge_of_memory_change_only_active_elements() {
    let mut rng = Rng(3);
    let mut checked = 0;
    for row in table::encodings() {
        let Some((word, info, op)) = word(row, &mut rng) else { continue };
        if op.access != Access::Store || op.shape != Shape::Masked {
            continue;
        }
        let step = usize::from(op.mem_esize) * if op.structure { usize::from(op.regs) } else { 1 };
        for _ in 0..20 {
            // Elements from `inside` on lie after the end of mapped memory.
            let elements = usize::from(op.bytes) / step;
            let inside = (rng.next() as usize) % (elements + 1);
            let base = DATA + PAGE - (inside * step) as u64;
            let mask = rng.next() << 32 | rng.next() & 0xffff_ffff;
            let lowest = |i: usize| 1u64 << (i * usize::from(op.reg_esize));
            let predicate = (0..inside).filter(|&i| mask & lowest(i) != 0).map(lowest).sum();
            let mut mem = memory();
            let mut cpu = cpu(&info, base, predicate);
            // An immediate moves the access.
            let Some(stream) = run(word, &mut cpu, &mut mem) else { continue };
            if stream[0] != base {
                continue;
            }
            let mut page = vec![0; PAGE as usize];
            mem.read(DATA, &mut page).expect("mapped");
            let named = |at: u64| {
                let i = (DATA + at).checked_sub(base).map(|distance| distance as usize / step);
                i.is_some_and(|i| i < inside && predicate & lowest(i) != 0)
            };
            for (at, &byte) in page.iter().enumerate() {
                let expected = if named(at as u64) { 0xa5 } else { 1 };
                assert_eq!(byte, expected, "{}: {word:08x} at {at:#x}, mask {predicate:#x}", row.name);
            }
            assert!(!mem.has_fresh() || mem.take_fresh() == [DATA], "{}: allocates a page", row.name);
            checked += 1;
        }
    }
    assert!(checked > 200, "only {checked} cases checked");
}
