//! Code map: the file and function of each block. Recorded when a block first runs, since processes and mappings come
//! and go.

use std::collections::BTreeMap;

use fxscope_linux::Guest;

use crate::calls::CalledFunction;

/// A function's name, by its place in [`CodeMap::names`].
type NameId = u32;

/// The origin of a block's code.
#[derive(Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Origin {
    /// The file, by its place in [`CodeMap::files`].
    pub file: Option<u32>,
    /// The offset of the first instruction in the file, or its address.
    pub place: u64,
    /// The same of the last instruction.
    pub last: u64,
    /// The parts of the block that are in one function each, in order. Instructions outside of them are in no function.
    functions: Box<[Part]>,
}

#[derive(Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct Part {
    /// The first instruction, and one past the last.
    from: usize,
    to: usize,
    function: NameId,
    /// The offset of the first instruction in the function, bytes.
    offset: u64,
}

/// A function of a file, or all code of a file that is in no function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize, serde::Serialize)]
struct Function {
    file: Option<u32>,
    /// The offset of the first instruction in the file, or its address; 0 for code that is in no function.
    start: u64,
    name: Option<NameId>,
}

/// The origins of all blocks.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct CodeMap {
    list: Vec<Origin>,
    /// The last origin with each file and place.
    by_place: BTreeMap<(Option<u32>, u64), u32>,
    /// Paths of files, as programs see them.
    files: Vec<Vec<u8>>,
    names: Vec<Box<str>>,
    by_name: BTreeMap<Box<str>, NameId>,
    /// Functions in the order in which they were executed first.
    functions: Vec<Function>,
    function_numbers: BTreeMap<Function, u32>,
}

impl CodeMap {
    /// Returns an empty map for a run of `guest`, whose program is the first file.
    pub(crate) fn new(guest: &Guest) -> CodeMap {
        CodeMap { files: vec![guest.program_file().to_vec()], ..CodeMap::default() }
    }

    /// Records the origin of `count` instructions at `start`. Returns its number, which is the one of an equal origin if that
    /// was the last one with this file and place.
    pub(crate) fn note(&mut self, guest: &Guest, start: u64, count: usize) -> u32 {
        let (file, place) = match guest.file_at(start) {
            Some((path, offset)) => (Some(self.file(path)), offset),
            None => (None, start),
        };
        let last = place + 4 * (count as u64).saturating_sub(1);
        let origin = Origin { file, place, last, functions: self.functions(guest, start, count) };
        let known = self.by_place.get(&(file, place)).copied();
        if let Some(number) = known.filter(|&number| *self.get(number) == origin) {
            return number;
        }
        let number = self.list.len() as u32;
        self.list.push(origin);
        self.by_place.insert((file, place), number);
        number
    }

    fn file(&mut self, path: Vec<u8>) -> u32 {
        let known = self.files.iter().position(|file| *file == path);
        known.unwrap_or_else(|| {
            self.files.push(path);
            self.files.len() - 1
        }) as u32
    }

    fn functions(&mut self, guest: &Guest, start: u64, count: usize) -> Box<[Part]> {
        let symbols = guest.running_symbols();
        let mut parts: Vec<Part> = Vec::new();
        for i in 0..count {
            let Some(place) = symbols.at(start + 4 * i as u64) else { continue };
            let function = self.name(place.function);
            match parts.last_mut() {
                Some(part)
                    if part.to == i
                        && part.function == function
                        && part.offset + 4 * (i - part.from) as u64 == place.offset =>
                {
                    part.to = i + 1;
                }
                _ => parts.push(Part { from: i, to: i + 1, function, offset: place.offset }),
            }
        }
        parts.into()
    }

    /// Returns the number of the function in which an origin begins, and whether the function begins there, too.
    pub(crate) fn function_of(&mut self, origin: u32) -> (u32, bool) {
        let origin = self.get(origin);
        let part = origin.functions.first().filter(|part| part.from == 0);
        let (start, name) =
            part.map_or((0, None), |part| (origin.place.wrapping_sub(part.offset), Some(part.function)));
        let begins = part.is_some_and(|part| part.offset == 0);
        let function = Function { file: origin.file, start, name };
        (self.function_number(function), begins)
    }

    /// Returns the number of the function at an address in the running process.
    pub(crate) fn function_at(&mut self, guest: &Guest, address: u64) -> u32 {
        let (file, place) = match guest.file_at(address) {
            Some((path, offset)) => (Some(self.file(path)), offset),
            None => (None, address),
        };
        let found = guest.running_symbols().at(address);
        let found = found.map(|found| (place.wrapping_sub(found.offset), Some(self.name(found.function))));
        let (start, name) = found.unwrap_or((0, None));
        self.function_number(Function { file, start, name })
    }

    fn function_number(&mut self, function: Function) -> u32 {
        let next = self.functions.len() as u32;
        let number = *self.function_numbers.entry(function).or_insert(next);
        if number == next {
            self.functions.push(function);
        }
        number
    }

    /// Returns all functions.
    pub(crate) fn called_functions(&self) -> Vec<CalledFunction> {
        let called = |&Function { file, start, name }: &Function| {
            let name = name.map(|name| self.names[name as usize].to_string());
            CalledFunction { file, start, name }
        };
        self.functions.iter().map(called).collect()
    }

    /// Returns the number of functions.
    pub(crate) fn function_count(&self) -> usize {
        self.functions.len()
    }

    fn name(&mut self, name: &str) -> NameId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = self.names.len() as NameId;
        self.names.push(name.into());
        self.by_name.insert(name.into(), id);
        id
    }

    /// Returns the number of origins.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether every number in it refers to an entry.
    pub(crate) fn is_sound(&self) -> bool {
        let known = |part: &Part| (part.function as usize) < self.names.len();
        let file = |origin: &Origin| origin.file.is_none_or(|file| (file as usize) < self.files.len());
        self.list.iter().all(|origin| file(origin) && origin.functions.iter().all(known))
            && self.by_place.values().all(|&number| (number as usize) < self.list.len())
            && self.by_name.values().all(|&function| (function as usize) < self.names.len())
            && self.functions.iter().all(|function| function.name.is_none_or(|name| (name as usize) < self.names.len()))
            && self.function_numbers.values().all(|&number| (number as usize) < self.functions.len())
    }

    /// Returns origin number `number`.
    pub(crate) fn get(&self, number: u32) -> &Origin {
        &self.list[number as usize]
    }

    /// Returns the function of instruction `i` of a block, and the instruction's offset in it.
    pub(crate) fn function(&self, origin: &Origin, i: usize) -> Option<(&str, u64)> {
        let part = origin.functions.iter().find(|part| (part.from..part.to).contains(&i))?;
        Some((&self.names[part.function as usize], part.offset + 4 * (i - part.from) as u64))
    }

    /// Returns all files, the program first.
    pub(crate) fn files(&self) -> &[Vec<u8>] {
        &self.files
    }
}
