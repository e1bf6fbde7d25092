//! What the loader refuses, and what it maps.

use fxscope_guestmem::{Memory, Prot, Segment};
use fxscope_linux::elf::{PIE_BASE, Role};
use fxscope_linux::{ElfError, Image};

/// One program header.
#[derive(Clone, Copy)]
struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_bytes: u64,
    memory_bytes: u64,
    align: u64,
}

const LOAD: u32 = 1;
const INTERP: u32 = 3;
const R: u32 = 4;
const W: u32 = 2;
const X: u32 = 1;

/// A text segment of 0x100 bytes at 0x400000, from the start of the file.
const TEXT: Header = Header {
    kind: LOAD,
    flags: R | X,
    offset: 0,
    address: 0x40_0000,
    file_bytes: 0x1000,
    memory_bytes: 0x1000,
    align: 0x1_0000,
};

/// An ELF file of 0x3000 bytes with the given headers, entered at 0x400200.
fn elf(headers: &[Header]) -> Vec<u8> {
    let mut f = b"\x7fELF\x02\x01\x01".to_vec();
    f.resize(16, 0);
    f.extend(2u16.to_le_bytes()); // ET_EXEC
    f.extend(183u16.to_le_bytes()); // EM_AARCH64
    f.extend(1u32.to_le_bytes());
    f.extend(0x40_0200u64.to_le_bytes());
    f.extend(64u64.to_le_bytes()); // program headers follow
    f.extend(0u64.to_le_bytes()); // no section headers
    f.extend(0u32.to_le_bytes());
    for half in [64u16, 56, headers.len() as u16, 64, 0, 0] {
        f.extend(half.to_le_bytes());
    }
    for h in headers {
        f.extend(h.kind.to_le_bytes());
        f.extend(h.flags.to_le_bytes());
        for word in [h.offset, h.address, h.address, h.file_bytes, h.memory_bytes, h.align] {
            f.extend(word.to_le_bytes());
        }
    }
    f.resize(f.len().max(0x3000), 0xa5);
    f
}

fn refusal(file: &[u8]) -> ElfError {
    Image::parse(file).expect_err("must be refused")
}

/// Returns the file with `bytes` at offset `at`.
fn patched(mut file: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn files_other_than_elf_are_refused_with_their_first_bytes() {
    assert_eq!(refusal(b"#!/bin/sh\n"), ElfError::NotElf { start: "23 21 2f 62".into() });
    assert!(refusal(b"").to_string().contains("empty"));
    assert_eq!(refusal(b"\x7fEL"), ElfError::NotElf { start: "7f 45 4c".into() });
}

#[test]
fn other_classes_byte_orders_machines_and_types_are_refused() {
    let file = elf(&[TEXT]);
    assert_eq!(refusal(&patched(file.clone(), 4, &[1])), ElfError::Class32);
    assert_eq!(refusal(&patched(file.clone(), 5, &[2])), ElfError::BigEndian);
    assert!(matches!(refusal(&patched(file.clone(), 4, &[9])), ElfError::Header { .. }));
    assert_eq!(refusal(&patched(file.clone(), 18, &[62, 0])), ElfError::Machine { machine: "x86-64".into() });
    assert_eq!(refusal(&patched(file.clone(), 16, &[1, 0])), ElfError::NotExecutable { kind: "an object file" });
    assert_eq!(refusal(&patched(file, 16, &[4, 0])), ElfError::NotExecutable { kind: "a core dump" });
}

#[test]
fn every_prefix_of_a_program_is_refused_or_complete() {
    let file = elf(&[TEXT, Header { kind: INTERP + 100, ..TEXT }]);
    for len in 0..0x1000 {
        assert!(Image::parse(&file[..len]).is_err(), "prefix of {len} bytes");
    }
    assert!(matches!(refusal(&file[..40]), ElfError::Truncated { .. }));
    assert!(matches!(refusal(&file[..100]), ElfError::Truncated { .. }));
    assert!(Image::parse(&file[..0x1000]).is_ok());
}

/// A program that names `path` as its interpreter.
fn dynamic(path: &[u8]) -> Vec<u8> {
    let bytes = path.len() as u64;
    let mut file = elf(&[TEXT, Header { kind: INTERP, offset: 0x1000, file_bytes: bytes, ..TEXT }]);
    file[0x1000..0x1000 + path.len()].copy_from_slice(path);
    file
}

#[test]
fn the_interpreter_of_a_dynamic_program_is_named() {
    let image = Image::parse(&dynamic(b"/lib/ld-linux-aarch64.so.1\0")).expect("valid");
    assert_eq!(image.interpreter(), Some(&b"/lib/ld-linux-aarch64.so.1"[..]));
    assert_eq!(Image::parse(&elf(&[TEXT])).expect("valid").interpreter(), None);
}

#[test]
fn interpreters_without_a_valid_name_are_refused() {
    let endless = dynamic(&[b'x'; 0x100]);
    let empty = dynamic(b"\0");
    let long = dynamic(&[vec![b'x'; 4096], vec![0]].concat());
    for file in [endless, empty, long] {
        let ElfError::Header { what } = refusal(&file) else { panic!("accepted") };
        assert!(what.contains("interpreter"), "{what}");
    }
    let beyond = elf(&[TEXT, Header { kind: INTERP, offset: u64::MAX - 4, file_bytes: 27, ..TEXT }]);
    assert!(matches!(refusal(&beyond), ElfError::Truncated { .. }));
}

#[test]
fn an_interpreter_must_not_require_another_one() {
    let error = Image::parse_as(&dynamic(b"/ld.so\0"), Role::Interpreter).expect_err("must be refused");
    assert_eq!(error, ElfError::NestedInterpreter { interpreter: "/ld.so".into() });
}

#[test]
fn position_independent_interpreters_are_placed_at_the_end_of_mappings() {
    let file = patched(elf(&[Header { address: 0, memory_bytes: 0x2_1000, ..TEXT }]), 16, &[3, 0]);
    let file = patched(file, 24, &0x200u64.to_le_bytes());
    let image = Image::parse_as(&file, Role::Interpreter).expect("valid");
    // 64 GiB for the stack and the page with the signal return code are above.
    let top = (1u64 << 48) - (1 << 36) - 0x1_0000;
    assert_eq!((image.bias(), image.entry()), (top - 0x3_0000, top - 0x3_0000 + 0x200));
    // Invalid sizes and alignments are refused as for any other file.
    let huge = patched(file.clone(), 64 + 40, &u64::MAX.to_le_bytes());
    assert!(matches!(Image::parse_as(&huge, Role::Interpreter), Err(ElfError::OutsideUserSpace { .. })));
    let aligned = patched(file, 64 + 48, &(1u64 << 63).to_le_bytes());
    assert!(Image::parse_as(&aligned, Role::Interpreter).is_err());
}

#[test]
fn a_segment_without_contents_may_be_placed_behind_the_end_of_the_file() {
    let bss = Header { flags: R | W, offset: 0x4000, address: 0x50_4000, file_bytes: 0, memory_bytes: 0x1000, ..TEXT };
    let file = elf(&[TEXT, bss]);
    let image = Image::parse(&file).expect("valid");
    let mut mem = Memory::new(1 << 20).expect("reserve");
    image.map(&file, &mut mem, 1 << 20).expect("maps");
    assert!(mem.regions().any(|r| r.start == 0x50_0000 && r.segment == Segment::Bss));
}

#[test]
fn segments_with_false_sizes_are_refused() {
    let huge = Header { file_bytes: 1 << 40, memory_bytes: 1 << 40, ..TEXT };
    assert!(matches!(refusal(&elf(&[huge])), ElfError::Truncated { .. }));
    let wrapping = Header { offset: u64::MAX - 0xfff, ..TEXT };
    assert!(matches!(refusal(&elf(&[wrapping])), ElfError::Truncated { .. }));
    let shrinking = Header { memory_bytes: 0xfff, ..TEXT };
    assert!(matches!(refusal(&elf(&[shrinking])), ElfError::FileLargerThanMemory { index: 0, .. }));
    let beyond = Header { address: u64::MAX - 0xffff, ..TEXT };
    assert!(matches!(refusal(&elf(&[beyond])), ElfError::OutsideUserSpace { index: 0, .. }));
    let high = Header { address: 1 << 48, ..TEXT };
    assert!(matches!(refusal(&elf(&[high])), ElfError::OutsideUserSpace { .. }));
    let page_zero = Header { address: 0, ..TEXT };
    assert!(matches!(refusal(&elf(&[page_zero])), ElfError::OutsideUserSpace { .. }));
}

#[test]
fn a_segment_of_terabytes_does_not_fit_in_memory() {
    let bss = Header { flags: R | W, address: 0x50_0000, file_bytes: 0, memory_bytes: 4 << 40, ..TEXT };
    let file = elf(&[TEXT, bss]);
    let image = Image::parse(&file).expect("valid headers");
    let mut mem = Memory::new(1 << 20).expect("reserve");
    let error = image.map(&file, &mut mem, 1 << 20).expect_err("too large");
    assert_eq!(error, ElfError::TooLarge { bytes: (4 << 40) + 0x1_0000, available: 1 << 20 });
    assert_eq!(mem.regions().count(), 0);
}

#[test]
fn overlapping_segments_are_refused() {
    let second = Header { flags: R | W, address: 0x40_0800, offset: 0x800, ..TEXT };
    let error = ElfError::Overlap { first: 0, second: 1, address: 0x40_0800 };
    assert_eq!(refusal(&elf(&[TEXT, second])), error);
}

#[test]
fn programs_without_segments_or_with_too_many_are_refused() {
    assert_eq!(refusal(&elf(&[])), ElfError::NoSegments);
    assert_eq!(refusal(&elf(&[Header { kind: 4, ..TEXT }])), ElfError::NoSegments);
    let many: Vec<Header> = (0..300).map(|i| Header { address: 0x40_0000 + i * 0x10_0000, ..TEXT }).collect();
    let file = elf(&many);
    assert_eq!(refusal(&file), ElfError::TooManySegments { count: 300 });
}

#[test]
fn alignments_that_contradict_the_address_are_refused() {
    let odd = Header { align: 3, ..TEXT };
    assert!(matches!(refusal(&elf(&[odd])), ElfError::BadAlignment { align: 3, .. }));
    let shifted = Header { address: 0x40_0010, ..TEXT };
    assert!(matches!(refusal(&elf(&[shifted])), ElfError::BadAlignment { .. }));
}

#[test]
fn an_entry_outside_code_is_refused() {
    let file = patched(elf(&[TEXT]), 24, &0x41_0000u64.to_le_bytes());
    assert_eq!(refusal(&file), ElfError::Entry { entry: 0x41_0000 });
    let data = Header { flags: R | W, ..TEXT };
    assert_eq!(refusal(&elf(&[data])), ElfError::Entry { entry: 0x40_0200 });
}

#[test]
fn segments_that_share_a_page_get_the_rights_of_both() {
    let data = Header { flags: R | W, offset: 0x1000, address: 0x40_1000, align: 0x1000, ..TEXT };
    let bss = Header { file_bytes: 0x1000, memory_bytes: 0x3_0000, ..data };
    let file = elf(&[Header { align: 0x1000, ..TEXT }, bss]);
    let image = Image::parse(&file).expect("valid");
    let mut mem = Memory::new(1 << 20).expect("reserve");
    image.map(&file, &mut mem, 1 << 20).expect("maps");
    let regions: Vec<_> = mem.regions().map(|r| (r.start, r.end, r.prot, r.segment)).collect();
    let expected = [(0x40_0000, 0x41_0000, Prot::RWX, Segment::Data), (0x41_0000, 0x44_0000, Prot::RW, Segment::Bss)];
    assert_eq!(regions, expected);
    assert_eq!(mem.load::<u8>(0x40_1fff), Ok(0xa5));
    assert_eq!(mem.load::<u8>(0x40_2000), Ok(0));
    assert_eq!(image.end(), 0x44_0000);
    assert_eq!((image.program_headers(), image.program_header_count()), (0x40_0040, 2));
}

#[test]
fn position_independent_programs_are_loaded_at_a_high_address() {
    let file = patched(elf(&[Header { address: 0, ..TEXT }]), 16, &[3, 0]);
    let file = patched(file, 24, &0x200u64.to_le_bytes());
    let image = Image::parse(&file).expect("valid");
    assert_eq!((image.bias(), image.entry()), (PIE_BASE, PIE_BASE + 0x200));
}

#[test]
fn random_damage_never_panics() {
    let name = Header { kind: INTERP, offset: 0x1000, file_bytes: 8, ..TEXT };
    let file = elf(&[TEXT, Header { flags: R | W, address: 0x50_0000, memory_bytes: 0x2_0000, ..TEXT }, name]);
    let file = patched(file, 0x1000, b"/ld.so\0\0");
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    for _ in 0..20_000 {
        let mut damaged = file.clone();
        for _ in 0..1 + next() % 4 {
            damaged[next() % 232] = next() as u8;
        }
        let role = [Role::Program, Role::Interpreter][next() % 2];
        if let Ok(image) = Image::parse_as(&damaged, role) {
            let mut mem = Memory::new(1 << 20).expect("reserve");
            let _ = image.map(&damaged, &mut mem, 1 << 20);
        }
    }
}
