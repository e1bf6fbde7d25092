//! Reads AArch64 ELF files without trusting their contents.
//!
//! [`Image::parse`] checks every number that later code relies on: a parsed image can be mapped without further checks, except
//! for the machine's memory.

use fxscope_guestmem::{MapError, PAGE, USER_END};
use fxscope_guestmem::{Memory, Prot, Segment};
use object::elf;
use object::read::ReadRef as _;
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, LittleEndian};

use crate::abi::content::Content;
use crate::abi::exported;
use crate::abi::layout::MMAP_TOP;
use crate::symbols::Symbols;

/// Maximum number of loadable segments of a program; linkers create two to six.
const MAX_SEGMENTS: usize = 256;

/// Maximum length of an interpreter's path in bytes (Linux's `PATH_MAX` without the final zero).
const MAX_PATH: usize = 4095;

/// Base address of position-independent programs: two thirds of user space, as in Linux without address randomisation.
pub const PIE_BASE: u64 = (USER_END / 3 * 2) & !(PAGE - 1);

/// Why a file cannot be run. Each message says what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the fields are the numbers named in the messages
pub enum ElfError {
    #[error("not an ELF file (it starts with {start}); give an AArch64 Linux program")]
    NotElf { start: String },
    #[error("a 32-bit ELF file; only 64-bit AArch64 programs run: build it for aarch64-linux-gnu")]
    Class32,
    #[error("a big-endian ELF file; only little-endian AArch64 programs run: build it for aarch64-linux-gnu")]
    BigEndian,
    #[error("built for {machine}, not for AArch64; build it with an aarch64-linux-gnu compiler")]
    Machine { machine: String },
    #[error("{kind}, not an executable program; link it into a program first")]
    NotExecutable { kind: &'static str },
    #[error("an interpreter that itself requires an interpreter, {interpreter}; give a sysroot with a valid one")]
    NestedInterpreter { interpreter: String },
    #[error(
        "truncated: {what} needs bytes {start:#x} to {end:#x} and the file has {len:#x}; copy or build the file again"
    )]
    Truncated { what: String, start: u64, end: u64, len: u64 },
    #[error("damaged ELF header: {what}; build the file again")]
    Header { what: String },
    #[error("no loadable segment; link the program again, without a script that drops PT_LOAD")]
    NoSegments,
    #[error("{count} loadable segments, more than the {MAX_SEGMENTS} supported; link the program again")]
    TooManySegments { count: usize },
    #[error(
        "segment {index} has more bytes in the file ({file:#x}) than in memory ({memory:#x}); build the file again"
    )]
    FileLargerThanMemory { index: usize, file: u64, memory: u64 },
    #[error(
        "segment {index} at {address:#x} with {bytes:#x} bytes lies outside the user address space \
         ({PAGE:#x} to {USER_END:#x}); link the program at a lower address"
    )]
    OutsideUserSpace { index: usize, address: u64, bytes: u64 },
    #[error(
        "segment {index} has alignment {align:#x}, which is not a power of two that its address {address:#x} \
             and file offset {offset:#x} agree on; link the program again"
    )]
    BadAlignment { index: usize, align: u64, address: u64, offset: u64 },
    #[error("segments {first} and {second} overlap at {address:#x}; link the program again")]
    Overlap { first: usize, second: usize, address: u64 },
    #[error("the entry point {entry:#x} is in no executable segment; link the program with a valid entry symbol")]
    Entry { entry: u64 },
    #[error(
        "needs {bytes} bytes of memory for its segments and the machine has {available}; use a smaller problem \
             size, or give the machine more memory"
    )]
    TooLarge { bytes: u64, available: u64 },
}

/// Bytes at the start of a file that say for which processor it is: the ELF header.
pub(crate) const HEADER: u64 = 64;

/// Returns whether a file that begins with these bytes is an ELF file for 64-bit Arm processors.
pub(crate) fn is_for_this_machine(start: &[u8]) -> bool {
    /// Magic number, 64 bits, little endian; `e_machine` at its offset.
    const IDENT: &[u8] = b"\x7fELF\x02\x01";
    const MACHINE: usize = 18;
    start.starts_with(IDENT) && start.get(MACHINE..MACHINE + 2) == Some(&elf::EM_AARCH64.0.to_le_bytes()[..])
}

/// One loadable segment, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load {
    /// Number of the program header, for messages.
    index: usize,
    prot: Prot,
    offset: u64,
    address: u64,
    file_bytes: u64,
    memory_bytes: u64,
}

impl Load {
    fn end(&self) -> u64 {
        self.address + self.memory_bytes
    }

    /// Copies its contents into mapped memory; `no_room` is the error to return when memory runs out.
    fn fill(&self, file: Content<'_>, mem: &mut Memory, no_room: &ElfError) -> Result<(), ElfError> {
        /// Bytes copied at a time.
        const PIECE: u64 = 1 << 20;
        let mut buffer = vec![0; self.file_bytes.min(PIECE) as usize];
        for done in (0..self.file_bytes).step_by(PIECE as usize) {
            let piece = &mut buffer[..(self.file_bytes - done).min(PIECE) as usize];
            file.copy(self.offset + done, piece).map_err(|_| self.truncated(file))?;
            mem.write_privileged(self.address + done, piece).map_err(|_| no_room.clone())?;
        }
        Ok(())
    }

    fn truncated(&self, file: Content<'_>) -> ElfError {
        truncated(file, &format!("segment {}", self.index), self.offset, self.file_bytes)
    }
}

/// The role of a file, which determines the base address of a position-independent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The program itself: at [`PIE_BASE`].
    Program,
    /// The interpreter that a dynamic program names (`ld.so`): directly below the end of mappings.
    Interpreter,
    /// A file to examine and not to start, such as a library: at the address of a program.
    Text,
}

/// A program or interpreter ready to be mapped.
#[derive(Debug)]
pub struct Image {
    loads: Vec<Load>,
    interpreter: Option<Vec<u8>>,
    /// Added to every address in the file: zero unless position-independent.
    bias: u64,
    entry: u64,
    phdr: u64,
    phnum: u64,
    /// Whether the program requests an executable stack.
    pub executable_stack: bool,
    /// Whether libraries see data objects that are in its `.bss`.
    pub(crate) exports_bss: bool,
    /// Function names by address.
    pub symbols: Symbols,
}

type Header = elf::FileHeader64<Endianness>;
const LE: Endianness = Endianness::Little;

impl Image {
    /// Reads and checks the headers of a program.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn parse(file: &[u8]) -> Result<Image, ElfError> {
        Image::read(Content::Bytes(file), Role::Program)
    }

    /// Reads and checks the headers of an ELF file to be loaded as `role`.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn parse_as(file: &[u8], role: Role) -> Result<Image, ElfError> {
        Image::read(Content::Bytes(file), role)
    }

    /// The same for contents that need not be in memory.
    pub(crate) fn read(file: Content<'_>, role: Role) -> Result<Image, ElfError> {
        check_identification(file)?;
        let header = Header::parse(file).map_err(|e| ElfError::Header { what: e.to_string() })?;
        let position_independent = check_header(header)?;
        let headers = program_headers(header, file)?;

        let interpreter = interpreter(headers, file)?;
        if let (Role::Interpreter, Some(path)) = (role, &interpreter) {
            return Err(ElfError::NestedInterpreter { interpreter: String::from_utf8_lossy(path).into_owned() });
        }
        let bias = match role {
            _ if !position_independent => 0,
            Role::Program | Role::Text => PIE_BASE,
            Role::Interpreter => interpreter_base(headers),
        };
        let loads = loads(headers, file, bias)?;
        let entry = header.e_entry(LE).wrapping_add(bias);
        let starts = entry & 3 == 0 && loads.iter().any(|l| l.prot.exec && (l.address..l.end()).contains(&entry));
        if role != Role::Text && !starts {
            return Err(ElfError::Entry { entry });
        }
        let stack = headers.iter().find(|p| p.p_type(LE) == elf::PT_GNU_STACK);
        Ok(Image {
            phdr: header_address(header.e_phoff(LE), &loads),
            phnum: headers.len() as u64,
            executable_stack: stack.is_some_and(|p| p.p_flags(LE).0 & elf::PF_X.0 != 0),
            exports_bss: role == Role::Program && exported::has_object(header, file, bss(&loads, bias)),
            symbols: Symbols::parse(header, file, bias).within(text(&loads)),
            loads,
            interpreter,
            bias,
            entry,
        })
    }

    /// Returns the path of the interpreter that loads the program's libraries and starts it (`PT_INTERP`), if it has one.
    #[must_use]
    pub fn interpreter(&self) -> Option<&[u8]> {
        self.interpreter.as_deref()
    }
    /// Returns the address of the first instruction.
    #[must_use]
    pub fn entry(&self) -> u64 {
        self.entry
    }
    /// Returns the address of the program headers in the program's memory (`AT_PHDR`), or 0 when no segment holds them.
    #[must_use]
    pub fn program_headers(&self) -> u64 {
        self.phdr
    }
    /// Returns the number of program headers (`AT_PHNUM`).
    #[must_use]
    pub fn program_header_count(&self) -> u64 {
        self.phnum
    }
    /// Returns the offset added to every address in the file.
    #[must_use]
    pub fn bias(&self) -> u64 {
        self.bias
    }
    /// Returns the address at which the byte of the file at `offset` is mapped as code.
    #[must_use]
    pub fn code_at(&self, offset: u64) -> Option<u64> {
        let holds = |l: &&Load| l.prot.exec && l.offset <= offset && offset - l.offset < l.file_bytes;
        self.loads.iter().find(holds).map(|l| l.address + (offset - l.offset))
    }
    /// Returns the address after the last segment: where the `brk` heap starts, rounded up to a page.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.loads.iter().map(|l| page_up(l.end())).max().unwrap_or(PAGE)
    }

    /// Iterates over the pages that hold parts of the file, with the file offset of each range.
    pub(crate) fn file_ranges(&self) -> impl Iterator<Item = (std::ops::Range<u64>, u64)> + '_ {
        self.loads.iter().filter(|l| l.file_bytes > 0).map(|l| {
            let start = l.address & !(PAGE - 1);
            (start..page_up(l.address + l.file_bytes), l.offset.saturating_sub(l.address - start))
        })
    }

    /// Maps the segments and copies their contents from `file`, the bytes the image was parsed from.
    ///
    /// # Errors
    /// [`ElfError::TooLarge`] when the segments do not fit in `memory_bytes`.
    pub fn map(&self, file: &[u8], mem: &mut Memory, memory_bytes: u64) -> Result<(), ElfError> {
        self.map_from(Content::Bytes(file), mem, memory_bytes)
    }

    /// The same for contents that need not be in memory.
    pub(crate) fn map_from(&self, file: Content<'_>, mem: &mut Memory, memory_bytes: u64) -> Result<(), ElfError> {
        let pieces = self.pieces();
        let bytes = pieces.iter().map(|p| p.end - p.start).sum();
        let too_large = ElfError::TooLarge { bytes, available: memory_bytes };
        if bytes > memory_bytes {
            return Err(too_large);
        }
        for p in &pieces {
            mem.map(p.start, p.end - p.start, p.prot, p.segment)
                .map_err(|e| ElfError::Header { what: map_error(e, p.start) })?;
        }
        for load in &self.loads {
            load.fill(file, mem, &too_large)?;
        }
        Ok(())
    }

    /// Returns the pages of all segments as ranges that do not overlap. A page shared by two segments gets the rights of both,
    /// and the purpose of the more specific one (data before text before bss).
    fn pieces(&self) -> Vec<Piece> {
        let parts: Vec<Piece> = self.loads.iter().flat_map(Piece::of).collect();
        let mut edges: Vec<u64> = parts.iter().flat_map(|p| [p.start, p.end]).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut pieces: Vec<Piece> = Vec::new();
        for edge in edges.windows(2) {
            let over = parts.iter().filter(|p| p.start <= edge[0] && edge[1] <= p.end);
            let Some(piece) = over.copied().reduce(Piece::merge) else { continue };
            let piece = Piece { start: edge[0], end: edge[1], ..piece };
            match pieces.last_mut() {
                Some(last) if last.end == piece.start && (last.prot, last.segment) == (piece.prot, piece.segment) => {
                    last.end = piece.end;
                }
                _ => pieces.push(piece),
            }
        }
        pieces
    }
}

/// A range of whole pages with one purpose.
#[derive(Clone, Copy)]
struct Piece {
    start: u64,
    end: u64,
    prot: Prot,
    segment: Segment,
}

impl Piece {
    /// Returns the pages of one segment: those with file contents, then those without.
    fn of(load: &Load) -> impl Iterator<Item = Piece> + use<> {
        let (start, end, prot) = (load.address & !(PAGE - 1), page_up(load.end()), load.prot);
        let file_end = if load.file_bytes > 0 { page_up(load.address + load.file_bytes) } else { start };
        let filled = if prot.write { Segment::Data } else { Segment::Text };
        let rest = if prot.write { Segment::Bss } else { Segment::Text };
        [Piece { start, end: file_end, prot, segment: filled }, Piece { start: file_end, end, prot, segment: rest }]
            .into_iter()
            .filter(|p| p.start < p.end)
    }

    fn merge(self, other: Piece) -> Piece {
        let rank = |s| match s {
            Segment::Data => 2,
            Segment::Text => 1,
            _ => 0,
        };
        let prot = Prot {
            read: self.prot.read || other.prot.read,
            write: self.prot.write || other.prot.write,
            exec: self.prot.exec || other.prot.exec,
        };
        let segment = if rank(other.segment) > rank(self.segment) { other.segment } else { self.segment };
        Piece { prot, segment, ..self }
    }
}

fn map_error(error: MapError, address: u64) -> String {
    match error {
        MapError::BadRange => format!("the segment at {address:#x} cannot be mapped"),
        MapError::NotMapped => format!("the segment at {address:#x} is not mapped"),
        MapError::NoRoom => format!("there is no room for the page tables of the segment at {address:#x}"),
    }
}

fn page_up(address: u64) -> u64 {
    address.next_multiple_of(PAGE)
}

fn check_identification(file: Content<'_>) -> Result<(), ElfError> {
    /// Length of the ELF identification in bytes (`EI_NIDENT`).
    const IDENTIFICATION: u64 = 16;
    file.limit_to_headers();
    let identification = file.start(IDENTIFICATION);
    if !identification.starts_with(&elf::ELFMAG) {
        let start: Vec<String> = identification.iter().take(4).map(|b| format!("{b:02x}")).collect();
        let start = if start.is_empty() { "nothing: it is empty".to_owned() } else { start.join(" ") };
        return Err(ElfError::NotElf { start });
    }
    check_within(file, "the ELF header", 0, size_of::<Header>() as u64)?;
    match identification[4] {
        1 => return Err(ElfError::Class32),
        2 => {}
        other => return Err(ElfError::Header { what: format!("class {other} is neither 32-bit nor 64-bit") }),
    }
    match identification[5] {
        1 => Ok(()),
        2 => Err(ElfError::BigEndian),
        other => Err(ElfError::Header { what: format!("byte order {other} is neither little nor big") }),
    }
}

/// Checks machine and type; returns whether the program is position-independent.
fn check_header(header: &Header) -> Result<bool, ElfError> {
    let machine = header.e_machine(LE);
    if machine != elf::EM_AARCH64 {
        let machine = match machine {
            elf::EM_X86_64 => "x86-64".to_owned(),
            elf::EM_386 => "x86".to_owned(),
            elf::EM_ARM => "32-bit Arm".to_owned(),
            elf::EM_RISCV => "RISC-V".to_owned(),
            elf::EM_PPC64 => "PowerPC".to_owned(),
            other => format!("ELF machine number {}", other.0),
        };
        return Err(ElfError::Machine { machine });
    }
    if usize::from(header.e_phentsize(LE)) != size_of::<elf::ProgramHeader64<LittleEndian>>() && header.e_phnum(LE) != 0
    {
        return Err(ElfError::Header { what: format!("program headers of {} bytes", header.e_phentsize(LE)) });
    }
    match header.e_type(LE) {
        elf::ET_EXEC => Ok(false),
        elf::ET_DYN => Ok(true),
        elf::ET_REL => Err(ElfError::NotExecutable { kind: "an object file" }),
        elf::ET_CORE => Err(ElfError::NotExecutable { kind: "a core dump" }),
        _ => Err(ElfError::NotExecutable { kind: "an ELF file of unknown type" }),
    }
}

fn program_headers<'a>(header: &Header, file: Content<'a>) -> Result<&'a [elf::ProgramHeader64<Endianness>], ElfError> {
    let count = header.e_phnum(LE);
    if count == 0 {
        return Err(ElfError::NoSegments);
    }
    let bytes = u64::from(count) * size_of::<elf::ProgramHeader64<Endianness>>() as u64;
    check_within(file, "the program header table", header.e_phoff(LE), bytes)?;
    header.program_headers(LE, file).map_err(|e| ElfError::Header { what: e.to_string() })
}

fn loads(headers: &[elf::ProgramHeader64<Endianness>], file: Content<'_>, bias: u64) -> Result<Vec<Load>, ElfError> {
    let mut loads = Vec::new();
    for (index, p) in headers.iter().enumerate() {
        // An empty segment maps nothing.
        if p.p_type(LE) == elf::PT_LOAD && p.p_memsz(LE) > 0 {
            loads.push(load(index, p, file, bias)?);
        }
    }
    if loads.is_empty() {
        return Err(ElfError::NoSegments);
    }
    if loads.len() > MAX_SEGMENTS {
        return Err(ElfError::TooManySegments { count: loads.len() });
    }
    loads.sort_by_key(|l: &Load| l.address);
    for pair in loads.windows(2) {
        if pair[1].address < pair[0].end() {
            let (first, second) = (pair[0].index, pair[1].index);
            return Err(ElfError::Overlap { first, second, address: pair[1].address });
        }
    }
    Ok(loads)
}

fn load(index: usize, p: &elf::ProgramHeader64<Endianness>, file: Content<'_>, bias: u64) -> Result<Load, ElfError> {
    let (offset, vaddr, align) = (p.p_offset(LE), p.p_vaddr(LE), p.p_align(LE));
    let (file_bytes, memory_bytes) = (p.p_filesz(LE), p.p_memsz(LE));
    if file_bytes > memory_bytes {
        return Err(ElfError::FileLargerThanMemory { index, file: file_bytes, memory: memory_bytes });
    }
    // Linkers place a segment without contents where its contents would be, which may be behind the end of the file.
    if file_bytes > 0 {
        check_within(file, &format!("segment {index}"), offset, file_bytes)?;
    }
    let agree = align <= 1 || (align.is_power_of_two() && vaddr & (align - 1) == offset & (align - 1));
    if !agree {
        return Err(ElfError::BadAlignment { index, align, address: vaddr, offset });
    }
    // Page zero stays unmapped, so that a null pointer faults. The top belongs to the stack.
    let limit = MMAP_TOP - bias;
    let outside = ElfError::OutsideUserSpace { index, address: vaddr, bytes: memory_bytes };
    let end = vaddr.checked_add(memory_bytes).ok_or(outside.clone())?;
    if end > limit || vaddr + bias < PAGE {
        return Err(outside);
    }
    let flags = p.p_flags(LE).0;
    let has = |flag: elf::ProgramFlags| flags & flag.0 != 0;
    // AArch64 Linux has no mapping that is executable or writable but not readable.
    let prot = Prot { read: flags & 7 != 0, write: has(elf::PF_W), exec: has(elf::PF_X) };
    Ok(Load { index, prot, offset, address: vaddr + bias, file_bytes, memory_bytes })
}

/// Iterates over the addresses, as in the file, of writable memory without contents in the file.
fn bss(loads: &[Load], bias: u64) -> impl Iterator<Item = std::ops::Range<u64>> + Clone + '_ {
    let writable = loads.iter().filter(|l| l.prot.write);
    writable.map(move |l| l.address + l.file_bytes - bias..l.end() - bias)
}

/// Returns the addresses from the first executable segment to the end of the last.
fn text(loads: &[Load]) -> std::ops::Range<u64> {
    let code = || loads.iter().filter(|l| l.prot.exec);
    code().map(|l| l.address).min().unwrap_or(0)..code().map(Load::end).max().unwrap_or(0)
}

/// Returns the names of the functions of a library whose contents from file offset `offset` on are mapped as code at `start`.
/// `None` if it is not such a file.
pub(crate) fn library_symbols(file: Content<'_>, start: u64, offset: u64) -> Option<Symbols> {
    check_identification(file).ok()?;
    let header = Header::parse(file).ok()?;
    let headers = program_headers(header, file).ok()?;
    let code = headers.iter().find(|p| {
        let first = p.p_offset(LE) & !(PAGE - 1);
        let executable = p.p_type(LE) == elf::PT_LOAD && p.p_flags(LE).0 & elf::PF_X.0 != 0;
        executable && first <= offset && offset - first < p.p_filesz(LE)
    })?;
    let bias = start.wrapping_sub(code.p_vaddr(LE).wrapping_sub(code.p_offset(LE)).wrapping_add(offset));
    let address = code.p_vaddr(LE).wrapping_add(bias);
    Some(Symbols::parse(header, file, bias).within(address..address.saturating_add(code.p_memsz(LE))))
}

/// Returns the interpreter's path, without the terminating zero.
fn interpreter(headers: &[elf::ProgramHeader64<Endianness>], file: Content<'_>) -> Result<Option<Vec<u8>>, ElfError> {
    let Some(p) = headers.iter().find(|p| p.p_type(LE) == elf::PT_INTERP) else { return Ok(None) };
    let (what, start, bytes) = ("the interpreter's name", p.p_offset(LE), p.p_filesz(LE));
    check_within(file, what, start, bytes)?;
    let text =
        file.read_bytes_at(start, bytes.min(MAX_PATH as u64 + 1)).map_err(|()| truncated(file, what, start, bytes))?;
    match text.iter().position(|&b| b == 0) {
        Some(len @ 1..=MAX_PATH) => Ok(Some(text[..len].to_vec())),
        _ => Err(ElfError::Header { what: "the interpreter's name is empty, has no end, or is too long".to_owned() }),
    }
}

/// Returns the base address of a position-independent interpreter: as high below the end of mappings as its segments and their
/// alignment allow. Invalid numbers are refused later, with the segment they belong to.
fn interpreter_base(headers: &[elf::ProgramHeader64<Endianness>]) -> u64 {
    let loads = || headers.iter().filter(|p| p.p_type(LE) == elf::PT_LOAD);
    let end = loads().map(|p| p.p_vaddr(LE).saturating_add(p.p_memsz(LE))).max().unwrap_or(0);
    let align = loads().map(|p| p.p_align(LE)).filter(|a| a.is_power_of_two()).fold(PAGE, u64::max);
    MMAP_TOP.saturating_sub(end) & !(align - 1)
}

/// Returns the address of the program headers, from their file offset.
fn header_address(offset: u64, loads: &[Load]) -> u64 {
    let holds = |l: &&Load| l.offset <= offset && offset - l.offset < l.file_bytes;
    loads.iter().find(holds).map_or(0, |l| l.address + (offset - l.offset))
}

/// Checks that the file has the bytes `[start, start + len)`.
fn check_within(file: Content<'_>, what: &str, start: u64, len: u64) -> Result<(), ElfError> {
    let end = start.checked_add(len).filter(|&end| end <= file.bytes());
    end.map(|_| ()).ok_or_else(|| truncated(file, what, start, len))
}

fn truncated(file: Content<'_>, what: &str, start: u64, len: u64) -> ElfError {
    ElfError::Truncated { what: what.to_owned(), start, end: start.saturating_add(len), len: file.bytes() }
}
