//! The library that draws charts: Apache ECharts, packed into pages that have a chart.

use base64::Engine as _;
use maud::{Markup, PreEscaped, html};

/// The library, compressed (`assets/echarts/README.md`).
const LIBRARY: &[u8] = include_bytes!("../../../assets/echarts/echarts.common.min.js.gz");
/// Its license, its notice, and the license of code in it.
const LICENSES: [&str; 3] = [
    include_str!("../../../assets/echarts/LICENSE.txt"),
    include_str!("../../../assets/echarts/NOTICE.txt"),
    include_str!("../../../assets/echarts/LICENSE-d3.txt"),
];
/// What draws charts with it.
const SCRIPT: &str = include_str!("charts.js");

/// Returns the library and the script that uses it.
pub fn scripts() -> Markup {
    html! {
        script type="application/gzip" id="library" { (PreEscaped(base64::engine::general_purpose::STANDARD.encode(LIBRARY))) }
        script { (PreEscaped(SCRIPT)) }
    }
}

/// Returns the library's licenses.
pub fn licenses() -> Markup {
    html! {
        details data-screen {
            summary { "Charts: Apache ECharts 6.1.0, Apache License 2.0" }
            pre tabindex="0" role="region" aria-label="Licenses" { @for license in LICENSES { (license) "\n\n" } }
        }
        noscript { p { "Charts require JavaScript. Their numbers are in the tables." } }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn the_library_is_the_file_whose_digest_is_recorded() {
        let mut script = Vec::new();
        flate2::read::GzDecoder::new(LIBRARY).read_to_end(&mut script).expect("gzip");
        let digest: String = Sha256::digest(&script).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(include_str!("../../../assets/echarts/README.md").contains(&digest), "{digest}");
    }
}
