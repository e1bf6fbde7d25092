//! The code of a program: words, micro-operations, source lines.

use std::collections::BTreeMap;
use std::path::Path;

use addr2line::Loader;
use fxscope_aarch64::{Blocks, Memory};
use fxscope_linux::Image;
use fxscope_linux::disasm::disassemble;
use fxscope_machine::Spec;
use fxscope_pipeline::resolve::{Action, RFlow, RUop};
use fxscope_pipeline::{ResolvedBlock, resolve_block};
use fxscope_record::HotSpot;
use fxscope_report::annotate::{Code, Flow, Instruction, MicroOp, Source};

use crate::pipes;

/// A program's file, mapped as it is when it runs.
pub(super) struct ProgramCode<'a> {
    spec: &'a Spec,
    memory: Memory,
    blocks: Blocks,
    /// Added to the addresses of the file.
    bias: u64,
    /// None when the debug information cannot be read; without any, it knows no lines.
    lines: Option<Loader>,
}

impl<'a> ProgramCode<'a> {
    /// Reads the program that the instructions `ran` are from. Fails, in words, when the file is none that runs,
    /// or has other functions where they are.
    pub(super) fn open(path: &Path, spec: &'a Spec, ran: &[HotSpot]) -> Result<ProgramCode<'a>, String> {
        let file = std::fs::read(path).map_err(|e| e.to_string())?;
        let image = Image::parse(&file).map_err(|e| e.to_string())?;
        let bytes = crate::machine_memory(spec);
        let mut memory = Memory::new(bytes).map_err(|e| e.to_string())?;
        image.map(&file, &mut memory, bytes).map_err(|e| e.to_string())?;
        // What is not in the file is a library's.
        check_same_program(&image, ran.iter().filter(|spot| memory.fetch(spot.address).is_ok()))?;
        let blocks = Blocks::new(spec.clock.vector_bits as usize / 8);
        Ok(ProgramCode { spec, memory, blocks, bias: image.bias(), lines: Loader::new(path).ok() })
    }

    /// Says about each instruction what the file says. `list` is sorted by address.
    pub(super) fn describe(&mut self, list: &mut [Instruction]) {
        let mut uops = self.uops(list);
        for instruction in list {
            let address = instruction.address;
            let Ok(word) = self.memory.fetch(address) else { continue };
            let text = disassemble(word, address);
            let uops = uops.remove(&address).unwrap_or_default();
            instruction.code = Some(Code { word, text, uops });
            instruction.source = self.source(address);
        }
    }

    /// The micro-operations by address. Instructions are decoded in blocks, as when they run: some become one
    /// micro-operation with their neighbour.
    fn uops(&mut self, list: &[Instruction]) -> BTreeMap<u64, Vec<MicroOp>> {
        let mut found = BTreeMap::new();
        let mut known_to = 0;
        for address in list.iter().map(|i| i.address) {
            if address < known_to {
                continue;
            }
            let Ok(id) = self.blocks.at(address, &mut self.memory) else { continue };
            let block = self.blocks.get(id);
            known_to = block.end;
            let resolved = resolve_block(block.start, &block.infos, self.spec);
            let each = (0..block.infos.len()).map(|i| (block.start + 4 * i as u64, micro_ops(&resolved, i)));
            found.extend(each);
        }
        found
    }

    fn source(&self, address: u64) -> Option<Source> {
        let location = self.lines.as_ref()?.find_location(address.checked_sub(self.bias)?).ok()??;
        // Line 0 stands for code that belongs to no line.
        let line = location.line.filter(|&line| line > 0)?;
        Some(Source { file: location.file?.to_owned(), line })
    }
}

/// Compares the functions that ran with those of the file, where both have names.
fn check_same_program<'a>(image: &Image, ran: impl Iterator<Item = &'a HotSpot>) -> Result<(), String> {
    for spot in ran.filter(|spot| !spot.function.is_empty()) {
        let Some(place) = image.symbols.at(spot.address) else { continue };
        if (place.function, place.offset) != (spot.function.as_str(), spot.offset) {
            return Err(format!(
                "it is not the program that ran: at {:#x} it has {place}, the run had {}+{:#x}",
                spot.address, spot.function, spot.offset
            ));
        }
    }
    Ok(())
}

/// The micro-operations of instruction `i` of a block.
fn micro_ops(block: &ResolvedBlock, i: usize) -> Vec<MicroOp> {
    let first = i.checked_sub(1).map_or(0, |before| block.uop_end[before]);
    block.uops[first as usize..block.uop_end[i] as usize].iter().map(micro_op).collect()
}

fn micro_op(uop: &RUop) -> MicroOp {
    let flow =
        |f: &RFlow| Flow { pipes: pipes::names(f.pipes).collect(), all: f.all, latency: f.latency, busy: f.busy };
    MicroOp {
        flows: uop.flows[..usize::from(uop.nflows)].iter().map(flow).collect(),
        independent: uop.action == Action::Store,
    }
}
