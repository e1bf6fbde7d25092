//! The top byte of a data address is not part of the address, and the dynamic stream keeps it: on machines with the HPC extension
//! it controls prefetching and sectors.

use fxscope_aarch64::table::{self, Ctx, Encoding};
use fxscope_aarch64::{Block, Cpu};
use fxscope_guestmem::PAGE;
use fxscope_guestmem::{Memory, Prot, Segment};
use fxscope_isa::{MemOp, RegClass, Shape, StaticInst};

const CODE: u64 = 0x1_0000;
const DATA: u64 = 0x2_0000;
const VL: usize = 64;
const TAG: u64 = 0xa5 << 56;
/// Words tried for each row.
const TRIES: u64 = 400;

/// The effects of an instruction: the dynamic stream, the registers it may write, and memory.
struct Left {
    stream: Vec<u64>,
    vectors: Vec<[u64; 8]>,
    general: Vec<u64>,
    memory: Vec<u8>,
}

/// Executes `word` with its addresses slightly above `DATA`, and `tag` in their top byte.
fn run(word: u32, info: &StaticInst, tag: u64) -> Option<Left> {
    let mut mem = Memory::new(8 * PAGE).expect("reserve guest memory");
    mem.map(DATA, PAGE, Prot::RW, Segment::Data).expect("map data");
    let bytes: Vec<u8> = (0..PAGE).map(|i| i as u8).collect();
    mem.write(DATA, &bytes).expect("the data page is mapped");
    let mut cpu = Cpu::new(VL);
    cpu.id.dczid = 6;
    cpu.p = [u64::MAX; 16];
    cpu.ffr = u64::MAX;
    let base = (DATA + PAGE / 2) | tag;
    let general: Vec<_> = info.addr_srcs.iter().filter(|r| r.class() == RegClass::Gpr).collect();
    for z in info.addr_srcs.iter().filter(|r| r.class() == RegClass::Vector) {
        let element = if general.is_empty() { base } else { 16 };
        cpu.z[usize::from(z.0) - 32].0 = [element; 8];
    }
    for (i, r) in general.iter().enumerate() {
        cpu.x[usize::from(r.0)] = if i == 0 { base } else { 16 };
    }
    let d = table::decode(word, &Ctx { pc: CODE, vl: VL }).expect("it decoded before");
    let block = Block::new(CODE, vec![d.inst], vec![d.info], VL);
    if block.run(&mut cpu, &mut mem).trap.is_some() {
        return None;
    }
    let mut memory = vec![0; PAGE as usize];
    mem.read(DATA, &mut memory).expect("the data page is mapped");
    let written = |r: u8| Some(fxscope_isa::Reg(r)) != info.writeback && !general.iter().any(|g| g.0 == r);
    Some(Left {
        stream: cpu.stream().to_vec(),
        vectors: cpu.z.iter().enumerate().filter(|(i, _)| !is_address(info, *i)).map(|(_, z)| z.0).collect(),
        general: (0..31).filter(|&r| written(r)).map(|r| cpu.x[usize::from(r)]).collect(),
        memory,
    })
}

fn is_address(info: &StaticInst, vector: usize) -> bool {
    info.addr_srcs.iter().any(|r| usize::from(r.0) == 32 + vector)
}

/// Returns the addresses among the words of one access.
fn addresses<'a>(op: &MemOp, stream: &'a [u64]) -> &'a [u64] {
    match op.shape {
        Shape::Single | Shape::Masked => &stream[..1],
        Shape::Indexed => &stream[1..],
    }
}

/// Returns whether the tag can be in the address at all, and does not also become data.
fn applies(info: &StaticInst) -> bool {
    let Some(op) = info.mem else { return false };
    let general = || info.addr_srcs.iter().filter(|r| r.class() == RegClass::Gpr);
    let narrow_bases = general().next().is_none() && op.reg_esize < 8;
    let distinct = general().count() < 2 || general().next() != general().nth(1);
    let also_data = info.addr_srcs.iter().any(|r| r.class() != RegClass::Predicate && info.srcs.iter().any(|s| s == r));
    let relative_to_pc = info.addr_srcs.iter().all(|r| r.class() == RegClass::Predicate);
    !narrow_bases && distinct && !also_data && !relative_to_pc
}

/// Returns a word of the row whose access can be tagged and succeeds, with its description.
fn word(row: &Encoding) -> Option<(u32, StaticInst)> {
    let mut state = u64::from(row.pattern.value);
    (0..TRIES).find_map(|_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let word = (state >> 32) as u32 & !row.pattern.mask | row.pattern.value;
        if !row.matches(word) {
            return None;
        }
        let info = table::decode(word, &Ctx { pc: CODE, vl: VL })?.info;
        (applies(&info) && run(word, &info, 0).is_some()).then_some((word, info))
    })
}

#[test]
fn every_access_ignores_the_top_byte_and_keeps_it_in_the_stream() {
    let mut checked = 0;
    for row in table::encodings() {
        let Some((word, info)) = word(row) else { continue };
        let op = info.mem.expect("an access");
        let plain = run(word, &info, 0).expect("it ran before");
        let tagged = run(word, &info, TAG).unwrap_or_else(|| panic!("{}: {word:08x} faults when tagged", row.name));
        assert!(plain.memory == tagged.memory, "{}: {word:08x} writes other memory", row.name);
        assert!(plain.vectors == tagged.vectors && plain.general == tagged.general, "{}: {word:08x}", row.name);
        for (p, t) in addresses(&op, &plain.stream).iter().zip(addresses(&op, &tagged.stream)) {
            assert_eq!(*t, p | TAG, "{}: {word:08x} has another address in its stream", row.name);
        }
        assert_eq!(plain.stream.len(), tagged.stream.len(), "{}", row.name);
        checked += 1;
    }
    assert!(checked > 400, "only {checked} encodings checked");
}
