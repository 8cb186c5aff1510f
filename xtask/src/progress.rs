//! Progress of long steps, on a terminal only.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use camino::Utf8PathBuf;
use indicatif::{ProgressBar, ProgressStyle};
use walkdir::WalkDir;

use crate::say;

/// A wheel that pip is fetching: the folder in which its file grows, and its size when whole.
#[derive(Clone, Debug)]
pub struct Download {
    /// Where the growing file lies; gone when the wheel is there.
    pub folder: Utf8PathBuf,
    /// Bytes of the whole file.
    pub size_bytes: u64,
}

/// How often the files are looked at.
const TICK: Duration = Duration::from_millis(100);

/// Runs `work`; while it runs, shows on a terminal how many bytes of `downloads` have arrived. pip itself says nothing that
/// a program could read, so its growing files are watched.
pub fn while_downloading<R>(downloads: &[Download], work: impl FnOnce() -> R) -> R {
    let total = downloads.iter().map(|download| download.size_bytes).sum();
    // Folders vanish when their wheel is whole, so a wheel that had begun and has no folder counts in full.
    let mut begun = vec![false; downloads.len()];
    let arrived = move || {
        let bytes = downloads.iter().zip(&mut begun).map(|(download, begun)| match grown(download) {
            Some(bytes) => {
                *begun = true;
                bytes
            }
            None if *begun => download.size_bytes,
            None => 0,
        });
        bytes.sum()
    };
    while_watching("fetch {bar:30} {bytes}/{total_bytes} {bytes_per_sec}", total, arrived, work)
}

/// Runs `work`; while it runs, shows on a terminal how many of `total` steps of `name` have left their record, as `done`
/// counts them.
pub fn while_building<R>(
    name: &str,
    total: usize,
    done: impl Fn() -> usize + Send,
    work: impl FnOnce() -> R,
) -> R {
    let template = format!("{name} {{bar:30}} {{pos}}/{{len}} {{elapsed}}");
    while_watching(&template, total as u64, move || done() as u64, work)
}

/// Off a terminal nothing is shown and nothing is watched.
fn while_watching<R>(
    template: &str,
    total: u64,
    mut position: impl FnMut() -> u64 + Send,
    work: impl FnOnce() -> R,
) -> R {
    if !std::io::stderr().is_terminal() || !say::stages() {
        return work();
    }
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let done = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                bar.set_position(position());
                thread::park_timeout(TICK);
            }
        });
        let result = work();
        done.store(true, Ordering::Release);
        watcher.thread().unpark();
        result
    });
    bar.finish_and_clear();
    result
}

/// Bytes below the download's folder, at most the whole size; `None` without the folder.
fn grown(download: &Download) -> Option<u64> {
    let files = WalkDir::new(&download.folder).into_iter().filter_map(Result::ok);
    let sizes = files
        .filter_map(|entry| entry.metadata().ok())
        .filter(std::fs::Metadata::is_file)
        .map(|file| file.len());
    download.folder.exists().then(|| sizes.sum::<u64>().min(download.size_bytes))
}
