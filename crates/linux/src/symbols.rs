//! Function names by address and addresses of variables by name, from a program's symbol table. Works without debug information.

use std::ops::Range;

use object::Endianness;
use object::elf;
use object::read::StringTable;
use object::read::elf::{FileHeader as _, SectionHeader as _, SectionTable, Sym as _};
use serde::{Deserialize, Serialize};

use crate::abi::content::Content;
use crate::thread_local::{Module, Variable};

/// The type of a probe's note.
const PROBE_NOTE: elf::NoteType = elf::NoteType(3);

type Sections<'a> = SectionTable<'a, elf::FileHeader64<Endianness>, Content<'a>>;

#[derive(Clone, Serialize, Deserialize)]
struct Symbol {
    start: u64,
    /// Zero if the table does not have it.
    bytes: u64,
    name: Box<str>,
}

/// A place in the program's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// Name of the function as in the symbol table.
    pub function: &'a str,
    /// First address of the function.
    pub start: u64,
    /// Bytes of the function, or 0 if the table does not have them.
    pub bytes: u64,
    /// Distance of the address from the start of the function in bytes.
    pub offset: u64,
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}+{:#x}", self.function, self.offset)
    }
}

/// A static probe, which marks a place in the text for tools: SystemTap's note format (`.note.stapsdt`, version 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Its address.
    pub address: u64,
    /// Its provider.
    pub provider: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// The functions of a program and its libraries, sorted by address.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Symbols {
    list: Vec<Symbol>,
    /// In the order of the files and their notes.
    probes: Vec<Probe>,
    /// Number of libraries added.
    version: u64,
    /// The program's own variables of known size, in the order of its table.
    variables: Vec<Symbol>,
    /// Thread-local data, in the order of loading.
    modules: Vec<Module>,
    /// The text range of each file. A label of unknown size does not extend beyond its file.
    files: Vec<Range<u64>>,
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Symbols({})", self.list.len())
    }
}

impl Symbols {
    /// Reads the functions, labels and variables of `.symtab`, or else of `.dynsym`, and the probes, adding `bias` to each
    /// address. A stripped file or a damaged table has none: names are a convenience, and the program runs without.
    pub(crate) fn parse(header: &elf::FileHeader64<Endianness>, file: Content<'_>, bias: u64) -> Symbols {
        let e = Endianness::Little;
        file.limit_to_names();
        let Ok(sections) = header.sections(e, file) else { return Symbols::default() };
        let probes = probes(&sections, file, bias);
        let (symbols, thread_local) = Symbols::named(&sections, file, bias);
        let modules = Module::of(header, file, thread_local).into_iter().collect();
        Symbols { probes, modules, ..symbols }
    }

    /// Returns the symbols of a file without its thread-local variables, and these.
    fn named<'a>(sections: &Sections<'a>, file: Content<'a>, bias: u64) -> (Symbols, Vec<Variable>) {
        let e = Endianness::Little;
        let table = [elf::SHT_SYMTAB, elf::SHT_DYNSYM]
            .into_iter()
            .filter_map(|kind| sections.symbols(e, file, kind).ok())
            .find(|table| !table.is_empty());
        let Some(table) = table else { return Default::default() };
        // Reads all names at once: one host call per name would be slow.
        let strings = sections.section(table.string_section()).and_then(|section| section.data(e, file));
        let Ok(strings) = strings else { return Default::default() };
        let strings = StringTable::new(strings, 0, strings.len() as u64);
        let (mut ranked, mut variables, mut thread_local) = (Vec::new(), Vec::new(), Vec::new());
        for symbol in table.iter() {
            let rank = match symbol.st_type() {
                elf::STT_FUNC | elf::STT_GNU_IFUNC => Some(0u8),
                elf::STT_NOTYPE => Some(1),
                elf::STT_OBJECT | elf::STT_COMMON | elf::STT_TLS if symbol.st_size(e) > 0 => None,
                _ => continue,
            };
            let Ok(name) = symbol.name(e, strings) else { continue };
            // `$x` and `$d` mark code and data for tools.
            if symbol.is_undefined(e) || name.is_empty() || name.starts_with(b"$") {
                continue;
            }
            let local = u8::from(symbol.st_bind() == elf::STB_LOCAL);
            let name = String::from_utf8_lossy(name).into();
            if symbol.st_type() == elf::STT_TLS {
                // Its value is its offset in the blocks of threads.
                thread_local.push(Variable { start: symbol.st_value(e), bytes: symbol.st_size(e), name });
                continue;
            }
            let start = symbol.st_value(e).wrapping_add(bias);
            let symbol = Symbol { start, bytes: symbol.st_size(e), name };
            match rank {
                Some(rank) => ranked.push((rank, local, symbol)),
                None => variables.push(symbol),
            }
        }
        // Of several names for one address: a function before a label, a global name before a local one, then a shorter one, then
        // alphabetically, so that the choice does not depend on the table's order.
        ranked.sort_by(|(ra, la, a), (rb, lb, b)| {
            (a.start, ra, la, a.name.len(), &a.name).cmp(&(b.start, rb, lb, b.name.len(), &b.name))
        });
        ranked.dedup_by_key(|(_, _, s)| s.start);
        let list = ranked.into_iter().map(|(_, _, s)| s).collect();
        (Symbols { list, variables, ..Symbols::default() }, thread_local)
    }

    /// Returns the bytes they use.
    pub(crate) fn bytes(&self) -> u64 {
        let symbols = self.list.iter().chain(&self.variables);
        let symbols: usize = symbols.map(|symbol| size_of::<Symbol>() + symbol.name.len()).sum();
        let probes: usize = self.probes.iter().map(|p| size_of::<Probe>() + p.provider.len() + p.name.len()).sum();
        let modules: usize = self.modules.iter().map(Module::size).sum();
        (symbols + probes + modules) as u64
    }

    /// Sets the text range that these names belong to.
    pub(crate) fn within(mut self, text: Range<u64>) -> Symbols {
        self.modules.iter_mut().for_each(|module| module.text = text.clone());
        self.files = vec![text];
        self
    }

    /// Adds the names of a library's functions, replacing those previously in its address range.
    pub(crate) fn add(&mut self, library: Symbols) {
        let taken = |address: u64| library.files.iter().any(|range| range.contains(&address));
        self.list.retain(|symbol| !taken(symbol.start));
        self.probes.retain(|probe| !taken(probe.address));
        self.files.retain(|range| !taken(range.start));
        self.list.extend(library.list);
        self.probes.extend(library.probes);
        self.modules.retain(|module| !taken(module.text.start));
        self.modules.extend(library.modules);
        self.version += 1;
        self.files.extend(library.files);
        // A stable sort keeps the file's order of names for one address.
        self.list.sort_by_key(|symbol| symbol.start);
    }

    /// Iterates over the functions and labels, names and addresses, by ascending address.
    pub fn functions(&self) -> impl Iterator<Item = (&str, u64)> {
        self.list.iter().map(|s| (&*s.name, s.start))
    }

    /// Iterates over the functions and labels of libraries that were added since the names had this version.
    pub fn functions_since(&self, version: u64) -> impl Iterator<Item = (&str, u64)> {
        let added = usize::try_from(self.version.saturating_sub(version)).unwrap_or(usize::MAX);
        self.files[self.files.len().saturating_sub(added)..].iter().flat_map(|file| {
            let first = self.list.partition_point(|symbol| symbol.start < file.start);
            let in_file = self.list[first..].iter().take_while(|symbol| symbol.start < file.end);
            in_file.map(|symbol| (&*symbol.name, symbol.start))
        })
    }

    /// Returns the thread-local data of the program and its libraries, in the order of loading.
    pub(crate) fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Returns whether a module is that of the program itself.
    pub(crate) fn is_of_program(&self, module: &Module) -> bool {
        self.files.first().is_some_and(|program| *program == module.text)
    }

    /// Returns the static probes of the program and its libraries.
    #[must_use]
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// Returns a number that changes when names do.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the addresses of the program's own variables called `name`: several if parts of it have separate variables of that
    /// name.
    pub fn variables(&self, name: &str) -> impl Iterator<Item = Range<u64>> {
        let named = self.variables.iter().filter(move |v| &*v.name == name);
        named.map(|v| v.start..v.start.saturating_add(v.bytes))
    }

    /// Returns the names of the program's largest variables, the largest first, at most `count`.
    #[must_use]
    pub fn largest_variables(&self, count: usize) -> Vec<&str> {
        let mut all: Vec<&Symbol> = self.variables.iter().collect();
        all.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
        all.iter().take(count).map(|v| &*v.name).collect()
    }

    /// Returns the function that contains `address`: the closest one before it that is long enough, or else a label of unknown
    /// size directly before it.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<Place<'_>> {
        let before = &self.list[..self.list.partition_point(|s| s.start <= address)];
        // Labels inside a function come between it and the address: examine a few earlier names.
        let function = before.iter().rev().take(16).find(|s| address - s.start < s.bytes);
        let label = before.last().filter(|s| s.bytes == 0 && self.same_file(s.start, address));
        let s = function.or(label)?;
        Some(Place { function: &s.name, start: s.start, bytes: s.bytes, offset: address - s.start })
    }
    fn same_file(&self, start: u64, address: u64) -> bool {
        self.files.iter().find(|range| range.contains(&address)).is_none_or(|range| range.contains(&start))
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Returns whether the program has no names (it is stripped).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Returns the static probes in a file's notes. A damaged note ends the reading of its section.
fn probes<'a>(sections: &Sections<'a>, file: Content<'a>, bias: u64) -> Vec<Probe> {
    let e = Endianness::Little;
    let notes = sections.iter().filter_map(|section| section.notes(e, file).ok().flatten());
    let probe = |desc: &[u8]| {
        // Three addresses: of the probe, of the section that prelinking would move, of its semaphore.
        let (addresses, texts) = desc.split_at_checked(24)?;
        let mut texts = texts.split(|&byte| byte == 0).map(String::from_utf8_lossy);
        let address = u64::from_le_bytes(addresses[..8].try_into().ok()?).wrapping_add(bias);
        Some(Probe { address, provider: texts.next()?.into(), name: texts.next()?.into() })
    };
    let mut found = Vec::new();
    for mut notes in notes {
        while let Ok(Some(note)) = notes.next() {
            if note.name() == b"stapsdt" && note.n_type(e) == PROBE_NOTE {
                found.extend(probe(note.desc()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(list: &[(u64, u64, &str)]) -> Symbols {
        Symbols {
            list: list.iter().map(|&(start, bytes, name)| Symbol { start, bytes, name: name.into() }).collect(),
            ..Symbols::default()
        }
    }

    fn name(symbols: &Symbols, address: u64) -> Option<String> {
        symbols.at(address).map(|place| place.to_string())
    }

    #[test]
    fn addresses_are_named_after_the_function_that_contains_them() {
        let s = symbols(&[(0x100, 0x20, "first"), (0x140, 0x10, "second")]);
        assert_eq!(name(&s, 0xff), None);
        assert_eq!(name(&s, 0x100).as_deref(), Some("first+0x0"));
        assert_eq!(name(&s, 0x11c).as_deref(), Some("first+0x1c"));
        assert_eq!(name(&s, 0x120), None, "between two functions");
        assert_eq!(name(&s, 0x14c).as_deref(), Some("second+0xc"));
    }

    #[test]
    fn labels_inside_a_function_do_not_hide_it() {
        let s = symbols(&[(0x100, 0x40, "function"), (0x110, 0, "label")]);
        assert_eq!(name(&s, 0x120).as_deref(), Some("function+0x20"));
        assert_eq!(name(&s, 0x150).as_deref(), Some("label+0x40"), "assembly without sizes");
    }

    #[test]
    fn names_that_were_added_since_a_version_are_those_of_the_last_libraries() {
        let mut all = symbols(&[(0x100, 0x10, "main")]).within(0x100..0x200);
        all.add(symbols(&[(0x2010, 0x10, "second")]).within(0x2000..0x2100));
        all.add(symbols(&[(0x1010, 0x10, "first"), (0x1020, 0, "label")]).within(0x1000..0x1100));
        let since = |version| all.functions_since(version).map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!((since(2), since(1)), (vec![], vec!["first", "label"]));
        assert_eq!(since(0), ["second", "first", "label"]);
    }

    #[test]
    fn a_librarys_names_replace_those_at_its_addresses() {
        let mut all = symbols(&[(0x100, 0, "_end"), (0x1040, 0x10, "unloaded")]).within(0x100..0x200);
        all.add(symbols(&[(0x1010, 0x10, "f"), (0x1080, 0, "label")]).within(0x1000..0x1100));
        assert_eq!(name(&all, 0x1014).as_deref(), Some("f+0x4"));
        assert_eq!(name(&all, 0x1048), None, "replaced");
        assert_eq!(name(&all, 0x1090).as_deref(), Some("label+0x10"));
        assert_eq!(name(&all, 0x150).as_deref(), Some("_end+0x50"));
        assert_eq!(name(&all, 0x1004), None, "not in the file of _end");
    }
}
