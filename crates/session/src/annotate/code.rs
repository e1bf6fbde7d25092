//! The code in a file: words, micro-operations, source lines.

use std::collections::BTreeMap;
use std::path::Path;

use addr2line::Loader;
use fxscope_aarch64::{Engine as _, Interpreter};
use fxscope_guestmem::Memory;
use fxscope_linux::disasm::disassemble;
use fxscope_linux::elf::{Image, Role};
use fxscope_machine::Spec;
use fxscope_pipeline::bind::{Action, BoundFlow, BoundUop};
use fxscope_pipeline::{BoundBlock, bind_block};
use fxscope_record::HotSpot;
use fxscope_report::annotate::{Code, Flow, Instruction, MicroOp, Source};

use crate::MAX_PROGRAM_BYTES;
use crate::pipes;

/// A code file, mapped as at run time.
pub(super) struct FileCode<'a> {
    spec: &'a Spec,
    image: Image,
    memory: Memory,
    engine: Interpreter,
    /// `None` if the debug information cannot be read; without any, it has no lines.
    lines: Option<Loader>,
    /// Lines of source files, by the path in the debug information; `None`: the file cannot be read.
    sources: BTreeMap<String, Option<Vec<String>>>,
}

impl<'a> FileCode<'a> {
    /// Opens a file that had the digest `digest` at run time. Fails with a message if it has no code, or, with
    /// `changed` as the message, if it has changed.
    pub(super) fn open(path: &Path, digest: &str, changed: &str, spec: &'a Spec) -> Result<FileCode<'a>, String> {
        let file = fxscope_host::read(path, MAX_PROGRAM_BYTES).map_err(|e| e.why.to_string())?;
        let image = Image::parse_as(&file, Role::Text).map_err(|e| e.to_string())?;
        if fxscope_record::digest(&file) != digest {
            return Err(changed.to_owned());
        }
        let bytes = crate::machine_memory(spec);
        let mut memory = Memory::new(bytes).map_err(|e| e.to_string())?;
        image.map(&file, &mut memory, bytes).map_err(|e| e.to_string())?;
        let engine = Interpreter::new(spec.clock.vector_bits as usize / 8);
        Ok(FileCode { spec, image, memory, engine, lines: Loader::new(path).ok(), sources: BTreeMap::new() })
    }

    /// Adds to each instruction what the file has about it. `spots` are the instructions' own, sorted by place.
    pub(super) fn describe(&mut self, spots: &[&HotSpot], list: &mut [Instruction]) {
        let mapped: Vec<Option<u64>> = spots.iter().map(|spot| self.image.code_at(spot.place)).collect();
        let mut uops = self.uops(mapped.iter().flatten().copied());
        for ((spot, instruction), mapped) in spots.iter().zip(list).zip(mapped) {
            let Some((mapped, word)) = mapped.and_then(|at| Some((at, self.memory.fetch(at).ok()?))) else { continue };
            let text = disassemble(word, spot.address);
            let uops = uops.remove(&mapped).unwrap_or_default();
            instruction.code = Some(Code { word, text, uops });
            instruction.source = self.source(mapped);
        }
    }

    /// Returns the micro-operations by address. Instructions are decoded in blocks, as at run time: some form one
    /// micro-operation with their neighbour.
    fn uops(&mut self, addresses: impl Iterator<Item = u64>) -> BTreeMap<u64, Vec<MicroOp>> {
        let mut found = BTreeMap::new();
        let mut known_to = 0;
        for address in addresses {
            if address < known_to {
                continue;
            }
            let Ok(id) = self.engine.at(address, &mut self.memory) else { continue };
            let block = self.engine.block(id);
            known_to = block.end;
            let resolved = bind_block(block.start, &block.infos, self.spec);
            let each = (0..block.infos.len()).map(|i| (block.start + 4 * i as u64, micro_ops(&resolved, i)));
            found.extend(each);
        }
        found
    }

    fn source(&mut self, mapped: u64) -> Option<Source> {
        let (file, line) = line_at(self.lines.as_ref()?, mapped.checked_sub(self.image.bias())?)?;
        let lines = self.sources.entry(file.clone()).or_insert_with(|| lines_of(&file));
        let text = lines.as_ref().and_then(|lines| lines.get(line as usize - 1)).map(|text| text.trim().to_owned());
        Some(Source { file, line, text })
    }
}

/// Largest source file that is read, bytes.
const MAX_SOURCE_BYTES: u64 = 16 << 20;

/// Returns the lines of a source file.
fn lines_of(path: &str) -> Option<Vec<String>> {
    let text = fxscope_host::read(Path::new(path), MAX_SOURCE_BYTES).ok()?;
    Some(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
}

/// Returns file and line of the code at an address of the debug information.
pub(crate) fn line_at(lines: &Loader, address: u64) -> Option<(String, u32)> {
    let location = lines.find_location(address).ok()??;
    // Line 0 marks code without a line.
    let line = location.line.filter(|&line| line > 0)?;
    Some((location.file?.to_owned(), line))
}

/// Returns source file and line of the code at offset `place` of a file, if its debug information has them.
pub fn source_line(path: &Path, place: u64) -> Option<(String, u32)> {
    let image = Image::parse_as(&fxscope_host::read(path, MAX_PROGRAM_BYTES).ok()?, Role::Text).ok()?;
    line_at(&Loader::new(path).ok()?, image.code_at(place)?.checked_sub(image.bias())?)
}

/// Returns the micro-operations of instruction `i` of a block.
fn micro_ops(block: &BoundBlock, i: usize) -> Vec<MicroOp> {
    let first = i.checked_sub(1).map_or(0, |before| block.tables.uop_end[before]);
    block.uops[first as usize..block.tables.uop_end[i] as usize].iter().map(micro_op).collect()
}

fn micro_op(uop: &BoundUop) -> MicroOp {
    let flow =
        |f: &BoundFlow| Flow { pipes: pipes::names(f.pipes).collect(), all: f.all, latency: f.latency, busy: f.busy };
    MicroOp {
        flows: uop.flows[..usize::from(uop.nflows)].iter().map(flow).collect(),
        independent: uop.action == Action::Store,
    }
}
