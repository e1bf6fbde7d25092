//! Profiles of pprof: the protocol buffer `perftools.profiles.Profile`, compressed with gzip
//! (<https://github.com/google/pprof/blob/main/proto/profile.proto>).

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use fxscope_record::Run;

use super::stacks::{Stacks, Unit};
use crate::sections::title;

/// A message under construction, in the wire format of protocol buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Adds a number; 0 is what a missing one means.
    fn number(&mut self, field: u64, value: u64) -> &mut Message {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds numbers in the packed form.
    fn numbers(&mut self, field: u64, values: impl IntoIterator<Item = u64>) -> &mut Message {
        let mut packed = Message::default();
        values.into_iter().for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0)
    }
}

/// The table of strings. The first one is empty.
#[derive(Default)]
struct Strings(BTreeMap<String, u64>);

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        let next = self.0.len() as u64;
        *self.0.entry(text.to_owned()).or_insert(next)
    }

    fn in_order(&self) -> Vec<&str> {
        let mut all: Vec<(&str, u64)> = self.0.iter().map(|(text, &number)| (text.as_str(), number)).collect();
        all.sort_by_key(|&(_, number)| number);
        all.into_iter().map(|(text, _)| text).collect()
    }
}

/// Returns a run as a compressed profile.
///
/// # Errors
/// If it cannot be compressed.
pub(super) fn profile(run: &Run, stacks: &Stacks) -> Result<Vec<u8>, String> {
    let message = message(run, stacks);
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(&message.0).and_then(|()| out.finish()).map_err(|e| e.to_string())
}

fn message(run: &Run, stacks: &Stacks) -> Message {
    let mut strings = Strings::default();
    strings.number("");
    let mut profile = Message::default();
    let (kind, unit) = match stacks.unit {
        Unit::Nanoseconds => ("time", "nanoseconds"),
        Unit::Cycles => ("cycles", "count"),
    };
    let mut value_type = Message::default();
    value_type.number(1, strings.number(kind)).number(2, strings.number(unit));
    profile.bytes(1, &value_type.0);
    for (series, sample) in stacks.series.iter().flat_map(|s| s.samples.iter().map(move |sample| (s, sample))) {
        let Some(node) = sample.node else { continue };
        let mut label = Message::default();
        label.number(1, strings.number("thread")).number(2, strings.number(&series.name));
        let mut message = Message::default();
        message.numbers(1, stacks.frames(node).map(|frame| frame as u64 + 1));
        message.numbers(2, [sample.weight]).bytes(3, &label.0);
        profile.bytes(2, &message.0);
    }
    // A location and a function for each frame: locations are lines of functions.
    for (id, node) in (1..).zip(&stacks.nodes) {
        let line = u64::from(node.line.unwrap_or(0));
        let mut of_line = Message::default();
        of_line.number(1, id).number(2, line);
        let mut location = Message::default();
        location.number(1, id).bytes(4, &of_line.0);
        profile.bytes(4, &location.0);
        let name = strings.number(&node.name);
        let file = strings.number(node.file.as_deref().unwrap_or(""));
        let mut function = Message::default();
        function.number(1, id).number(2, name).number(3, name).number(4, file).number(5, line);
        profile.bytes(5, &function.0);
    }
    let comment = strings.number(&title(run));
    if stacks.unit == Unit::Nanoseconds {
        let mut period_type = Message::default();
        period_type.number(1, strings.number(kind)).number(2, strings.number(unit));
        profile.bytes(11, &period_type.0).number(12, run.profile.stacks.interval_ns);
    }
    profile.numbers(13, [comment]);
    strings.in_order().iter().for_each(|text| {
        profile.bytes(6, text.as_bytes());
    });
    profile
}
