//! Files of NumPy: a reader of their documented format finds the values that JSON has.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};

use crate::common;

use fxscope_record::{ALL, Run, Thread};
use fxscope_report::render::{json, numpy};
use fxscope_report::{By, Options};

/// The columns of a file: type and bytes by name.
struct File {
    columns: BTreeMap<String, (String, Vec<u8>)>,
}

impl File {
    /// Reads an archive of entries of version 1.0: magic text, version, length of the header, header, values.
    fn of(bytes: &[u8]) -> File {
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive");
        let names: Vec<String> = archive.file_names().map(|name| name.expect("text").into_owned()).collect();
        let mut columns = BTreeMap::new();
        for name in names {
            let mut entry = Vec::new();
            archive.by_name(&name).expect("an entry").read_to_end(&mut entry).expect("readable");
            columns.insert(name.strip_suffix(".npy").expect("an array").to_owned(), array(&entry));
        }
        File { columns }
    }

    fn words<const N: usize>(&self, name: &str, kind: &str) -> Vec<[u8; N]> {
        let (found, bytes) = &self.columns[name];
        assert_eq!(found, kind, "{name}");
        bytes.chunks_exact(N).map(|word| word.try_into().expect("a word")).collect()
    }

    fn numbers(&self, name: &str) -> Vec<f64> {
        self.words(name, "<f8").into_iter().map(f64::from_le_bytes).collect()
    }

    fn counts(&self, name: &str) -> Vec<i64> {
        self.words(name, "<i8").into_iter().map(i64::from_le_bytes).collect()
    }

    fn places(&self, name: &str) -> Vec<u32> {
        self.words(name, "<i4").into_iter().map(u32::from_le_bytes).collect()
    }
}

/// Returns type and bytes of an array.
fn array(entry: &[u8]) -> (String, Vec<u8>) {
    assert_eq!(&entry[..8], b"\x93NUMPY\x01\x00");
    let length = usize::from(u16::from_le_bytes([entry[8], entry[9]]));
    assert_eq!((10 + length) % 64, 0, "values are aligned");
    let (header, values) = entry[10..].split_at(length);
    let header = std::str::from_utf8(header).expect("text").strip_suffix('\n').expect("a line");
    let (kind, rest) = header.strip_prefix("{'descr': '").and_then(|rest| rest.split_once('\'')).expect("a type");
    let shape = rest.strip_prefix(", 'fortran_order': False, 'shape': (").expect("rows come one by one");
    let (rows, end) = shape.split_once(',').expect("one dimension");
    assert_eq!(end.trim_end(), "), }");
    let (letter, digits) = kind[1..].split_at(1);
    let each: usize = digits.parse::<usize>().expect("a size") * if letter == "U" { 4 } else { 1 };
    assert_eq!(values.len(), each * rows.parse::<usize>().expect("a number"));
    (kind.to_owned(), values.to_vec())
}

fn file(runs: &[Run], by: By) -> File {
    File::of(&numpy::render(runs, &Options { by, ..Options::default() }).expect("columns"))
}

#[test]
fn threads_of_all_regions_have_the_values_of_json() {
    let run = common::run("a.elf", vec![common::region(ALL, 1, 10), common::region("triad", 7, 5)]);
    let file = file(std::slice::from_ref(&run), By::Thread);
    let json = json::run(&run);
    let threads: Vec<_> = json["regions"]
        .as_array()
        .expect("regions")
        .iter()
        .flat_map(|r| r["threads"].as_array().expect("threads"))
        .collect();
    let of =
        |kind: &str, name: &str| threads.iter().filter_map(|thread| thread[kind][name].as_f64()).collect::<Vec<_>>();
    assert_eq!(file.numbers("ipc"), of("metrics", "ipc"));
    let instructions: Vec<f64> = file.counts("INST_RETIRED").into_iter().map(|count| count as f64).collect();
    assert_eq!(instructions, of("events", "INST_RETIRED"));
    assert_eq!(file.places("cpu").len(), threads.len());
    // Names are UTF-32, filled with zeros.
    let letters: Vec<char> =
        file.words("region", "<U5").into_iter().map(u32::from_le_bytes).filter_map(char::from_u32).collect();
    let names: Vec<String> = letters.chunks(5).map(|name| name.iter().filter(|c| **c != '\0').collect()).collect();
    assert_eq!((names.first().map(String::as_str), names.last().map(String::as_str)), (Some(ALL), Some("triad")));
}

#[test]
fn counts_that_some_threads_lack_are_numbers_or_none() {
    let mut more = common::counts(10);
    more.insert("BUS_READ_TOTAL_MEM".to_owned(), 70);
    let thread = |thread, counts| (Thread { thread, cpu: 12 + thread, ..Thread::default() }, counts);
    let run = common::of_threads(vec![thread(0, more), thread(1, common::counts(10))]);
    let reads = file(&[run], By::Thread).numbers("BUS_READ_TOTAL_MEM");
    assert!(reads[0] == 70.0 && reads[1].is_nan());
}

#[test]
fn rows_are_those_of_the_part_that_is_asked_for() {
    let threads =
        (0..).zip([12, 13, 24]).map(|(thread, cpu)| (Thread { thread, cpu, ..Thread::default() }, common::counts(10)));
    let mut run = common::of_threads(threads.collect());
    run.constants.extend([("first_core".to_owned(), 12.0), ("cmg_cores".to_owned(), 12.0)]);
    let runs = [run.clone(), run];
    assert_eq!(file(&runs, By::Thread).places("run"), [1, 1, 1, 2, 2, 2]);
    let cmgs = file(&runs, By::Cmg);
    assert_eq!(cmgs.places("cmg"), [0, 1, 0, 1]);
    assert!(!cmgs.columns.contains_key("INST_RETIRED") && !cmgs.columns.contains_key("thread"));
    assert_eq!(file(&runs, By::Process).numbers("ipc").len(), 2);
}
