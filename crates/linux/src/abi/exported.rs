//! Data objects in `.bss` that a program shows to its libraries: the large-page library treats such programs differently.

use std::ops::Range;

use object::Endianness;
use object::elf;
use object::read::elf::{FileHeader as _, Sym as _};

use crate::abi::content::Content;

/// Returns whether the dynamic symbol table has a global or weak object with a size in one of the ranges of `bss`, addresses as in the
/// file. A file whose table cannot be read has none.
pub(super) fn has_object(
    header: &elf::FileHeader64<Endianness>,
    file: Content<'_>,
    bss: impl Iterator<Item = Range<u64>> + Clone,
) -> bool {
    let e = Endianness::Little;
    file.limit_to_names();
    let table = header.sections(e, file).and_then(|sections| sections.symbols(e, file, elf::SHT_DYNSYM));
    let Ok(table) = table else { return false };
    table.iter().any(|symbol| {
        let is_object = symbol.st_type() == elf::STT_OBJECT && symbol.st_size(e) > 0;
        let is_shown = symbol.st_bind() == elf::STB_GLOBAL || symbol.st_bind() == elf::STB_WEAK;
        is_object && is_shown && bss.clone().any(|range| range.contains(&symbol.st_value(e)))
    })
}
