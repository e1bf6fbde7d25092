//! Programs of `kernels/` for memory latency, in functional mode: sparse matrices in ten storage formats, hash join,
//! matrix product.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::{kernel, output};

const FORMATS: [&str; 10] = ["crs", "ccs", "msr", "dia", "ell", "jds", "bsr", "bsc", "vbr", "coo"];

/// Returns exit status, and the text on standard output or else on standard error.
fn run(folder: &Path, program: &str, args: &[&str]) -> (i32, String) {
    let program = kernel(&format!("{program}.elf"));
    let output = output(folder, &[&["run", "--quiet", "--mode", "functional", "--", &program], args].concat());
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().expect("ended by itself"), String::from_utf8(text).expect("text"))
}

fn spmv(folder: &Path, args: &[&str]) -> (i32, String) {
    run(folder, "spmv", args)
}

/// Returns the numbers in the line of a run, which must be correct.
fn numbers(program: &str, args: &[&str]) -> BTreeMap<String, u64> {
    let (status, text) = run(&std::env::temp_dir(), program, args);
    assert!(status == 0 && text.starts_with(&format!("{program} ok ")), "{args:?}: {status} {text}");
    let named = text.split_whitespace().filter_map(|word| word.split_once('='));
    named.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

fn generated(args: &[&str]) -> BTreeMap<String, u64> {
    numbers("spmv", args)
}

/// Runs on a file with this content.
fn market(content: &str, more: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().expect("temporary folder");
    fs::write(folder.path().join("a.mtx"), content).expect("writable");
    spmv(folder.path(), &[&["file=a.mtx"], more].concat())
}

/// Returns the program's digest of y: a sum over the bits of its elements, its upper half.
fn checksum(y: &[f64]) -> u64 {
    let element = |(i, y): (usize, &f64)| {
        let bits = y.to_bits();
        (bits ^ bits >> 32).wrapping_mul(2 * i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    y.iter().enumerate().map(element).fold(0, u64::wrapping_add) >> 32
}

#[test]
fn shapes_have_as_many_nonzeros_as_arithmetic_says() {
    let nonzeros = |args: &[&str]| generated(args)["nonzeros"];
    // A band of 7 lacks 3 + 2 + 1 at each corner.
    assert_eq!(nonzeros(&["matrix=banded", "n=100", "row=7"]), 100 * 7 - 12);
    assert_eq!(nonzeros(&["matrix=diagonals", "n=100", "row=3", "band=40"]), 100 + 60 + 60);
    assert_eq!(nonzeros(&["matrix=blocks", "n=100", "row=9", "block=3"]), 99 * 9);
    // 12 * 12 points of at most 150, minus missing neighbours on each side.
    assert_eq!(nonzeros(&["matrix=stencil2d", "n=150"]), 5 * 144 - 4 * 12);
    assert_eq!(nonzeros(&["matrix=stencil3d", "n=216"]), 7 * 216 - 6 * 36);
    assert_eq!(nonzeros(&["matrix=stencil27", "n=216"]), 16 * 16 * 16);
    assert_eq!(nonzeros(&["matrix=random", "n=100", "row=7"]), 700);
    // The first row, the rest of the first column, and three diagonals of the remainder.
    assert_eq!(nonzeros(&["matrix=arrow", "n=100", "row=3"]), 100 + 99 + (98 + 99 + 98));
    assert_eq!(nonzeros(&["matrix=denserow", "n=80", "row=1"]), 79 + 70);
}

#[test]
fn bytes_are_those_that_the_definition_of_a_format_gives() {
    let bytes = |format: &str| generated(&[&format!("format={format}"), "matrix=banded", "n=100", "row=3"])["bytes"];
    let (n, nonzeros) = (100, 298);
    assert_eq!(bytes("crs"), (n + 1) * 4 + nonzeros * 12);
    assert_eq!(bytes("ccs"), bytes("crs"));
    assert_eq!(bytes("msr"), (nonzeros + 1) * 12);
    assert_eq!(bytes("dia"), 3 * 4 + 3 * n * 8);
    assert_eq!(bytes("ell"), 3 * n * 12);
    assert_eq!(bytes("coo"), nonzeros * 16);
    // Each of 50 rows of blocks of two has one on the diagonal and its neighbours.
    assert_eq!(bytes("bsr"), 51 * 4 + (3 * 50 - 2) * (4 + 4 * 8));
    assert_eq!(bytes("bsc"), bytes("bsr"));
}

#[test]
fn a_power_law_has_the_mean_row_that_is_asked_for_and_long_rows() {
    let run = generated(&["format=ell", "matrix=powerlaw", "n=4000", "row=10"]);
    assert!((36_000..44_000).contains(&run["nonzeros"]), "{run:?}");
    let longest = run["bytes"] / 12 / run["rows"];
    assert!((100..1000).contains(&longest), "{run:?}");
}

#[test]
fn another_seed_is_another_matrix() {
    let sum = |seed: &str| generated(&["matrix=random", "n=200", seed])["checksum"];
    assert_eq!(sum("seed=1"), sum("seed=1"));
    assert_ne!(sum("seed=1"), sum("seed=2"));
}

#[test]
fn a_file_is_read_with_its_symmetry_numbers_and_repeated_entries() {
    // x is -7, 3, -3.
    let real = "%%MatrixMarket matrix coordinate real general\n% a comment\n\n3 3 5\n\
                1 1 1.5\n3 2 -25e-2\n2 3 .5D1\r\n  2   3 +1\n1 3 2.\n";
    let symmetric = "%%matrixmarket MATRIX Coordinate Integer Symmetric\n3 3 2\n1 1 4\n3 2 -2\n";
    let skew = "%%MatrixMarket matrix coordinate pattern skew-symmetric\n3 3 1\n2 1\n";
    for (content, y) in [(real, [-16.5, -18.0, -0.75]), (symmetric, [-28.0, 6.0, -6.0]), (skew, [-3.0, -7.0, 0.0])] {
        for format in FORMATS {
            let (status, text) = market(content, &[&format!("format={format}")]);
            assert_eq!(status, 0, "{text}");
            assert!(text.contains(&format!(" checksum={} ", checksum(&y))), "{format} {y:?}: {text}");
        }
    }
}

#[test]
fn values_that_are_not_integers_are_compared_within_rounding() {
    let mut content = "%%MatrixMarket matrix coordinate real general\n40 40 1600\n".to_owned();
    for place in 0..1600 {
        content += &format!("{} {} {}e-3\n", place / 40 + 1, place % 40 + 1, place * 7919 % 1601);
    }
    for format in FORMATS {
        let (status, text) = market(&content, &[&format!("format={format}")]);
        assert!(status == 0 && text.contains("nonzeros=1600 "), "{status} {text}");
    }
}

#[test]
fn a_malformed_file_is_refused_with_its_line() {
    const BANNER: &str = "%%MatrixMarket matrix coordinate";
    for (content, message) in [
        (String::new(), "line 1: the file must begin with %%MatrixMarket"),
        ("%%MatrixMarket vector\n".into(), "line 1: the banner must name a matrix, not 'vector'"),
        ("%%MatrixMarket matrix array real general\n".into(), "line 1: the format is array"),
        (format!("{BANNER} complex general\n"), "line 1: values must be real, integer or pattern, not 'complex'"),
        (format!("{BANNER} real hermitian\n"), "line 1: the matrix must be general, symmetric or skew-symmetric"),
        (format!("{BANNER} real general\n%\n"), "line 3: the file ends before the line with the sizes"),
        (format!("{BANNER} real general\n3 3\n"), "line 2: the number of entries must be a number"),
        (format!("{BANNER} real general\n%\n3 -3 1\n"), "line 3: the number of columns must be a number"),
        (format!("{BANNER} real general\n3 4 1\n"), "line 2: 3 rows and 4 columns; only square matrices"),
        (format!("{BANNER} real general\n3 3 1 1\n"), "line 2: the line with the sizes has three numbers"),
        (format!("{BANNER} real general\n3 3 2\n1 1 1\n"), "line 4: the file ends behind 1 of 2 entries"),
        (format!("{BANNER} real general\n3 3 1\n1 1 1\n\n2 2 1\n"), "line 5: another entry behind the 1 that"),
        (format!("{BANNER} real general\n3 3 1\n4 1 1\n"), "line 3: the row must be a number from 1 to 3, not '4'"),
        (format!("{BANNER} real general\n3 3 1\n1 0 1\n"), "line 3: the column must be a number from 1 to 3, not '0'"),
        (format!("{BANNER} real general\n3 3 1\n1 18446744073709551617 1\n"), "line 3: the column must be"),
        (format!("{BANNER} real general\n3 3 1\n1 1 nan\n"), "line 3: the value must be a number, not 'nan'"),
        (format!("{BANNER} real general\n3 3 1\n1 1 1e\n"), "line 3: the value must be a number, not '1e'"),
        (format!("{BANNER} real general\n3 3 1\n1 1\n"), "line 3: the value must be a number, not ''"),
        (format!("{BANNER} real general\n3 3 1\n1 1 1e309\n"), "line 3: the value is too large for a double"),
        (format!("{BANNER} integer general\n3 3 1\n1 1 1.0\n"), "line 3: the value must be an integer, not '1.0'"),
        (format!("{BANNER} pattern general\n3 3 1\n1 1 1\n"), "line 3: behind the entry comes '1'"),
        (format!("{BANNER} real symmetric\n3 3 1\n1 2 1\n"), "line 3: entries of a symmetric matrix lie on or below"),
        (
            format!("{BANNER} real skew-symmetric\n3 3 1\n1 1 1\n"),
            "line 3: entries of a skew-symmetric matrix lie below",
        ),
        (format!("{BANNER} real general\n3 3 1\n1 1 {}\n", "1".repeat(64)), "line 3: a word of more than 63"),
    ] {
        let (status, text) = market(&content, &[]);
        assert_eq!(status, 2, "{content}: {text}");
        assert!(text.starts_with(&format!("spmv: a.mtx, {message}")), "{message}: {text}");
    }
}

#[test]
fn anything_but_a_file_is_refused() {
    let folder = std::env::temp_dir();
    assert_eq!(spmv(&folder, &["file=nowhere.mtx"]), (2, "spmv: cannot read nowhere.mtx: no such file\n".into()));
    assert_eq!(spmv(&folder, &["file=/"]), (2, "spmv: cannot read /: it is a folder\n".into()));
    assert_eq!(spmv(&folder, &["matrix=file"]), (2, "spmv: matrix=file needs file=PATH\n".into()));
}

#[test]
fn more_memory_than_the_limit_is_refused_before_it_is_taken() {
    let folder = std::env::temp_dir();
    for (args, message) in [
        (
            &["format=ell", "matrix=arrow", "n=200000"][..],
            // 200000 * 200000 elements of 12 bytes.
            "spmv: ELL needs 447.1 GiB for this matrix (200000 rows x longest row of 200000), \
             limit is 1.0 GiB (limit=1024, in MiB)\n",
        ),
        (
            &["format=dia", "matrix=denserow", "n=8000", "row=1", "limit=100"],
            // 1000 columns of the dense row are empty; its own diagonal is that of the other rows.
            "spmv: DIA needs 427.3 MiB for this matrix (7000 diagonals x 8000 rows), \
             limit is 100.0 MiB (limit=100, in MiB)\n",
        ),
        (
            &["n=2147483646"],
            "spmv: CRS, which all formats are made from, needs 8.0 GiB for this matrix \
             (2147483647 row pointers of 4 bytes), limit is 1.0 GiB (limit=1024, in MiB)\n",
        ),
    ] {
        assert_eq!(spmv(&folder, args), (3, message.to_owned()), "{args:?}");
    }
    let (status, text) = market("%%MatrixMarket matrix coordinate real general\n3 3 99999999999999999\n", &[]);
    assert_eq!(status, 3, "{text}");
    assert!(text.starts_with("spmv: reading the file needs 1490116119.4 GiB for this matrix"), "{text}");
}

#[test]
fn a_hash_join_finds_the_pairs_that_were_drawn_whatever_its_table() {
    for (matches, pairs) in [("matches=0", 0..=0), ("matches=100", 5000..=5000), ("matches=40", 1800..=2200)] {
        let [linear, chains] = ["table=linear", "table=chains"].map(|table| {
            let run = numbers("hashjoin", &[table, "build=900", "probe=5000", matches]);
            (run["pairs"], run["sum"])
        });
        assert!(linear == chains && pairs.contains(&linear.0), "{matches}: {linear:?} {chains:?}");
    }
}

#[test]
fn a_matrix_product_is_right_at_sizes_around_its_blocks() {
    for n in [1, 31, 32, 33, 119, 121, 255, 257] {
        numbers("dgemm", &[&format!("n={n}")]);
    }
}

/// They take many seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn all_formats_give_the_same_product_of_each_shape() {
        for matrix in
            ["banded", "diagonals", "blocks", "stencil2d", "stencil27", "powerlaw", "random", "arrow", "denserow"]
        {
            let matrix = format!("matrix={matrix}");
            let sums = FORMATS.map(|format| {
                let run = generated(&[&format!("format={format}"), &matrix, "n=203", "row=7", "block=4"]);
                (run["rows"], run["nonzeros"], run["checksum"])
            });
            assert!(sums.iter().all(|sum| *sum == sums[0]), "{matrix}: {sums:?}");
        }
    }
}
