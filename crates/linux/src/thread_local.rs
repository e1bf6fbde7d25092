//! Thread-local variables: which variable of which file is at an address.
//!
//! Each file with thread-local data is a *module*; each thread has a block for each module that it uses. The thread pointer points to
//! two words, behind which the block of the program follows (Drepper, *ELF Handling For Thread-Local Storage*, variant I). The first of
//! these words points to a vector in which the C library keeps the address of each block, by the number of the module in the order of
//! loading.

use std::ops::Range;

use fxscope_guestmem::SpaceId;
use object::Endianness;
use object::elf::{FileHeader64, PT_TLS};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use serde::{Deserialize, Serialize};

use crate::abi::content::Content;
use crate::guest::Guest;

/// Bytes between the thread pointer and the program's block, if that is not aligned to more.
const HEAD: u64 = 16;
/// Bytes of an entry of the vector: the address of a block, and what the C library needs to free it.
const ENTRY: u64 = 16;

/// A thread-local variable of the running thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadLocal<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where the thread has it.
    pub place: Range<u64>,
}

/// A variable by its offset in the blocks of its module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Variable {
    pub start: u64,
    pub bytes: u64,
    pub name: Box<str>,
}

/// The thread-local data of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Module {
    /// The text of the file.
    pub text: Range<u64>,
    /// Alignment and size of its blocks, bytes.
    align: u64,
    bytes: u64,
    /// By ascending offset.
    variables: Vec<Variable>,
}

impl Module {
    /// Returns the module of a file with these variables; `None`: it has no thread-local data.
    pub(crate) fn of(header: &FileHeader64<Endianness>, file: Content<'_>, variables: Vec<Variable>) -> Option<Module> {
        let e = Endianness::Little;
        let segment = header.program_headers(e, file).ok()?.iter().find(|segment| segment.p_type(e) == PT_TLS)?;
        let mut variables = variables;
        variables.sort_by(|a, b| (a.start, &a.name).cmp(&(b.start, &b.name)));
        let align = segment.p_align(e).max(1);
        let is_power = align.is_power_of_two();
        is_power.then(|| Module { text: 0..0, align, bytes: segment.p_memsz(e), variables })
    }

    /// Returns the bytes that its names use.
    pub(crate) fn size(&self) -> usize {
        self.variables.iter().map(|variable| size_of::<Variable>() + variable.name.len()).sum()
    }

    /// Returns the variable at an offset in a block.
    fn at(&self, offset: u64) -> Option<&Variable> {
        let before = self.variables.partition_point(|variable| variable.start <= offset);
        self.variables[..before].last().filter(|variable| offset - variable.start < variable.bytes)
    }
}

impl Guest {
    /// Returns the thread-local variable of the running thread that is at an address.
    #[must_use]
    pub fn thread_local_at(&self, address: u64) -> Option<ThreadLocal<'_>> {
        let symbols = self.running_symbols();
        let blocks = Blocks { guest: self, space: self.space().id, pointer: self.cpu().tpidr };
        let has_program = symbols.modules().first().is_some_and(|first| symbols.is_of_program(first));
        symbols.modules().iter().zip(1u64..).find_map(|(module, number)| {
            let block = blocks.of(module, number, has_program)?;
            let offset = address.checked_sub(block).filter(|&offset| offset < module.bytes)?;
            let variable = module.at(offset)?;
            let start = block + variable.start;
            Some(ThreadLocal { name: &variable.name, place: start..start + variable.bytes })
        })
    }
}

/// Where a thread has the blocks of modules.
struct Blocks<'a> {
    guest: &'a Guest,
    space: SpaceId,
    pointer: u64,
}

impl Blocks<'_> {
    /// Returns the block of module number `number`; `has_program`: the first one is that of the program.
    fn of(&self, module: &Module, number: u64, has_program: bool) -> Option<u64> {
        let program = self.pointer.checked_add(HEAD.next_multiple_of(module.align))?;
        if has_program && number == 1 {
            return Some(program);
        }
        // The vector of another C library has another form: its first entry is not the program's block.
        let vector = self.peek(self.pointer)?;
        let block = self.peek(vector.checked_add(ENTRY.checked_mul(number)?)?)?;
        Some(block).filter(|&block| block != 0 && block != u64::MAX)
    }

    fn peek(&self, address: u64) -> Option<u64> {
        self.guest.memory().peek(self.space, address)
    }
}
