//! Functions that the compiler makes of others, such as OpenMP regions: users name the function of the source.

use crate::common;

use common::timed::OPENMP;
use common::{compile, failure, output};

/// Line 4 has the region; `solve` is inlined, so that only what the compiler has made of its region has a symbol.
const PROGRAM: &str = "static volatile double x[4096];\n\
                       static void solve(int n)\n\
                       {\n\
                       #pragma omp parallel for\n\
                           for (int i = 0; i < n; i++)\n\
                               x[i] += 1.5 * i;\n\
                       }\n\
                       int main(void) { for (int k = 0; k < 5; k++) solve(4096); return 0; }\n";

#[test]
fn parts_annotations_and_verdicts_know_a_region_by_the_function_that_it_is_in() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let folder = folder.path();
    compile(folder, "region", &[&OPENMP[..], &["-g"]].concat(), PROGRAM);
    let text = |args: &[&str]| {
        let output = output(folder, args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let usual = ["run", "-q", "--cpus", "12-13", "-e", "OMP_NUM_THREADS=2"];
    text(&[&usual[..], &["-o", "all.fxr", "--", "./region"]].concat());
    let verdict = text(&["report", "all.fxr"]);
    assert!(
        verdict.contains("solve (OpenMP region, line 4)") && verdict.contains("solve, OpenMP region (region.c:"),
        "{verdict}"
    );
    let annotated = text(&["annotate", "all.fxr", "--function", "solve"]);
    assert!(annotated.contains("solve._omp_fn.0 at 0x"), "{annotated}");
    let (_, error) = failure(folder, &["annotate", "all.fxr", "--function", "solver"]);
    assert!(error.contains("no function of that name"), "{error}");

    text(
        &[&usual[..], &["-o", "part.fxr", "--from", "function=solve", "--until", "function=solve", "--", "./region"]]
            .concat(),
    );
    let part = text(&["report", "part.fxr"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(part.contains("no function solve, but what the compiler has made of it: solve._omp_fn.0"), "{part}");
    assert!(!part.contains("nothing was timed"), "{part}");
}
