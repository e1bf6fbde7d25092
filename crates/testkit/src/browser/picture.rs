//! Small pictures of pages, which are kept and compared.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

/// Pixels of a page's side that one pixel of a picture stands for: letters and thin lines leave no more than their grey.
const CELL: usize = 40;
/// Colours are rounded down to multiples of this.
const STEP: u8 = 8;
/// Pictures of the same page differ by less, whatever the fonts and their edges are.
pub const TOLERANCE: f64 = 0.25;

/// A picture of a page, of mean colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    width: usize,
    /// Red, green and blue, row by row.
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// Returns the picture of a screenshot.
    ///
    /// # Panics
    /// When the file is no PNG of eight bits for each colour.
    #[must_use]
    pub fn of_screenshot(path: &Path) -> Picture {
        Picture::read(path).smaller()
    }

    /// Reads a picture as it is.
    ///
    /// # Panics
    /// When the file is no PNG of eight bits for each colour.
    #[must_use]
    pub fn read(path: &Path) -> Picture {
        let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut reader = png::Decoder::new(BufReader::new(file)).read_info().expect("a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("of a size that fits into memory")];
        let frame = reader.next_frame(&mut bytes).expect("a PNG");
        assert_eq!(frame.bit_depth, png::BitDepth::Eight, "{}", path.display());
        let samples = frame.color_type.samples();
        assert!(samples >= 3, "{}: in colours", path.display());
        let pixels = bytes[..frame.buffer_size()].chunks_exact(samples).map(|p| [p[0], p[1], p[2]]).collect();
        Picture { width: frame.width as usize, pixels }
    }

    /// Writes it as a PNG.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) {
        let file = File::create(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let height = self.pixels.len() / self.width;
        let mut encoder = png::Encoder::new(BufWriter::new(file), self.width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header().expect("written");
        writer.write_image_data(self.pixels.as_flattened()).expect("written");
    }

    /// Returns the share of what two pictures show that only one of them shows: 0 if they are equal, 1 if nothing is in both. What a
    /// picture shows is what differs from the most frequent colour of the first, its ground.
    #[must_use]
    pub fn difference(&self, other: &Picture) -> f64 {
        if self.width != other.width || self.pixels.len() != other.pixels.len() {
            return 1.0;
        }
        let ground = self.ground();
        let pairs = || self.pixels.iter().zip(&other.pixels);
        let shown: u64 = pairs().map(|(&a, &b)| distance(a, ground) + distance(b, ground)).sum();
        let differs: u64 = pairs().map(|(&a, &b)| distance(a, b)).sum();
        if shown == 0 { 0.0 } else { differs as f64 / shown as f64 }
    }

    /// The most frequent colour.
    fn ground(&self) -> [u8; 3] {
        let mut colours = self.pixels.clone();
        colours.sort_unstable();
        let runs = colours.chunk_by(|a, b| a == b);
        runs.max_by_key(|run| run.len()).map_or([255; 3], |run| run[0])
    }

    /// Returns it with one pixel for each [`CELL`] by [`CELL`] of its own.
    fn smaller(&self) -> Picture {
        let width = self.width.div_ceil(CELL);
        let rows: Vec<&[[u8; 3]]> = self.pixels.chunks(self.width).collect();
        let of_rows = |rows: &[&[[u8; 3]]]| (0..width).map(|x| mean(rows, x * CELL)).collect::<Vec<_>>();
        Picture { width, pixels: rows.chunks(CELL).flat_map(of_rows).collect() }
    }
}

/// The mean colour of a cell that begins at `start` of these rows.
fn mean(rows: &[&[[u8; 3]]], start: usize) -> [u8; 3] {
    let cell: Vec<[u8; 3]> =
        rows.iter().flat_map(|row| row[start..row.len().min(start + CELL)].iter().copied()).collect();
    std::array::from_fn(|colour| {
        let sum: usize = cell.iter().map(|pixel| usize::from(pixel[colour])).sum();
        (sum / cell.len()) as u8 / STEP * STEP
    })
}

fn distance(a: [u8; 3], b: [u8; 3]) -> u64 {
    a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(b))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with lines of text from a row on.
    fn page(first: usize, ground: u8) -> Picture {
        let row = |y: usize| {
            let written = y >= first && (y - first) % 100 < 50;
            (0..400).map(move |x| if written && x < 300 { [ground ^ 0x60; 3] } else { [ground; 3] })
        };
        Picture { width: 400, pixels: (0..1_000).flat_map(row).collect() }
    }

    #[test]
    fn the_same_lines_are_equal_and_lines_moved_by_a_few_pixels_nearly() {
        let (one, moved) = (page(80, 248).smaller(), page(84, 248).smaller());
        assert_eq!(one.difference(&one), 0.0);
        let difference = one.difference(&moved);
        assert!(difference > 0.0 && difference < TOLERANCE, "{difference}");
    }

    #[test]
    fn lines_at_another_place_and_another_ground_differ() {
        let one = page(80, 248).smaller();
        let (moved, dark) = (one.difference(&page(130, 248).smaller()), one.difference(&page(80, 16).smaller()));
        assert!(moved > 2.0 * TOLERANCE && dark > 2.0 * TOLERANCE, "{moved}, {dark}");
    }

    #[test]
    fn a_picture_is_the_same_after_it_was_written() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("picture.png");
        let picture = page(80, 248).smaller();
        picture.write(&path);
        assert_eq!(Picture::read(&path), picture);
    }
}
