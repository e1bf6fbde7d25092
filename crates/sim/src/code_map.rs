//! Which files and functions code is from. Noted when a block first runs: processes, and what is mapped in them, come
//! and go.

use std::collections::HashMap;

use fxscope_linux::Guest;

/// A function that code is from.
type FunctionId = u32;

/// Where the code of a block is from.
pub(crate) struct Origin {
    /// The file it was mapped from, by its place in [`CodeMap::files`].
    pub file: Option<u32>,
    /// Offset in that file of the first instruction; its address when there is no file.
    pub place: u64,
    /// Parts of the block in one function each, in order; what is before and between them is in none.
    functions: Box<[Part]>,
}

struct Part {
    /// The first instruction, and the one behind the last.
    from: usize,
    to: usize,
    function: FunctionId,
    /// Distance of the first instruction from the function's start, bytes.
    offset: u64,
}

/// What is known about the origin of code.
#[derive(Default)]
pub(crate) struct CodeMap {
    list: Vec<Origin>,
    /// Paths of files as programs see them.
    files: Vec<Vec<u8>>,
    names: Vec<Box<str>>,
    by_name: HashMap<Box<str>, FunctionId>,
}

impl CodeMap {
    /// Those of a run of `process`, whose own file is the first.
    pub(crate) fn new(process: &Guest) -> CodeMap {
        CodeMap { files: vec![process.program_file().to_vec()], ..CodeMap::default() }
    }

    /// Notes where `count` instructions from `start` on are from; returns the number by which to ask for it.
    pub(crate) fn note(&mut self, process: &Guest, start: u64, count: usize) -> u32 {
        let (file, place) = match process.file_at(start) {
            Some((path, offset)) => (Some(self.file(path)), offset),
            None => (None, start),
        };
        let functions = self.functions(process, start, count);
        self.list.push(Origin { file, place, functions });
        (self.list.len() - 1) as u32
    }

    fn file(&mut self, path: Vec<u8>) -> u32 {
        let known = self.files.iter().position(|file| *file == path);
        known.unwrap_or_else(|| {
            self.files.push(path);
            self.files.len() - 1
        }) as u32
    }

    fn functions(&mut self, process: &Guest, start: u64, count: usize) -> Box<[Part]> {
        let symbols = process.running_symbols();
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

    fn name(&mut self, name: &str) -> FunctionId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = self.names.len() as FunctionId;
        self.names.push(name.into());
        self.by_name.insert(name.into(), id);
        id
    }

    /// The origin with a number.
    pub(crate) fn get(&self, number: u32) -> &Origin {
        &self.list[number as usize]
    }

    /// The function of instruction `i` of a block, and the instruction's distance from its start.
    pub(crate) fn function(&self, origin: &Origin, i: usize) -> Option<(&str, u64)> {
        let part = origin.functions.iter().find(|part| (part.from..part.to).contains(&i))?;
        Some((&self.names[part.function as usize], part.offset + 4 * (i - part.from) as u64))
    }

    /// The files, the program's own first.
    pub(crate) fn files(&self) -> &[Vec<u8>] {
        &self.files
    }
}
