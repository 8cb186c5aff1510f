//! Load checks: the modules in one fresh process each time, alone and in every order, bound at once; each says who it is.

use camino::{Utf8Path, Utf8PathBuf};
use requal::{Digest, Exit, Failure, Outcome};
use serde::{Deserialize, Serialize};

use crate::sys::proc::Call;

/// A file that a worker is asked to load.
#[derive(Clone, Debug, Serialize)]
pub struct Loadable {
    /// The marker that it must answer; absent for the run-time library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its absolute path.
    pub path: Utf8PathBuf,
    /// Its expected digest.
    pub sha256: Digest,
}

/// One passed check: the names in the order of their loading.
pub type Order = Vec<String>;

#[derive(Serialize)]
struct Request<'a> {
    hello: Hello<'a>,
}

#[derive(Serialize)]
struct Hello<'a> {
    modules: Vec<&'a Loadable>,
    cudart: &'a Loadable,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Hello(HelloAnswer),
    Error(serde_json::Value),
}

#[derive(Deserialize)]
struct HelloAnswer {
    modules: Vec<ModuleAnswer>,
    libcuda_mapped: Vec<String>,
    nvidia_descriptors: Vec<String>,
}

#[derive(Deserialize)]
struct ModuleAnswer {
    name: String,
    sha256: Digest,
}

/// Loads `modules` with `worker`: each alone, then all in every order.
///
/// # Errors
/// `E-LOAD` (exit 4) with the first order that fails and the worker's own words.
pub fn check(worker: &Utf8Path, modules: &[Loadable], cudart: &Loadable) -> Outcome<Vec<Order>> {
    let alone = (0..modules.len()).map(|index| vec![index]);
    let together = permutations(modules.len()).into_iter().filter(|order| order.len() > 1);
    let mut passed = Vec::new();
    for order in alone.chain(together) {
        let order: Vec<&Loadable> = order.into_iter().map(|index| &modules[index]).collect();
        load(worker, &order, cudart)?;
        passed.push(order.iter().filter_map(|module| module.name.clone()).collect());
    }
    Ok(passed)
}

fn load(worker: &Utf8Path, order: &[&Loadable], cudart: &Loadable) -> Outcome<()> {
    let request = serde_json::to_string(&Request { hello: Hello { modules: order.to_vec(), cudart } });
    let request = request.map_err(std::io::Error::from)?;
    // No GPU is to be seen, and nothing of the caller's environment may choose another library.
    let call = Call::new(worker, &[], "/".into()).env("CUDA_VISIBLE_DEVICES", "").env("LC_ALL", "C");
    let ended = call.run_with_input(&format!("{request}\n"))?;
    let fault = |found: String| {
        let names: Vec<&str> = order.iter().filter_map(|module| module.name.as_deref()).collect();
        Failure::new(
            Exit::BuildFailed,
            "E-LOAD",
            format!("the modules do not load as {}", names.join(", then ")),
        )
        .expected("each answers with its own marker; no driver library mapped, no GPU device open")
        .found(found)
        .hint(format!("printf '%s\\n' '{request}' | ({})", call.command_line()))
    };
    let answer = ended.output.lines().next().unwrap_or_default();
    match serde_json::from_str(answer) {
        Ok(Answer::Hello(hello)) => {
            let same = hello
                .modules
                .iter()
                .map(|m| (Some(&m.name), m.sha256))
                .eq(order.iter().map(|m| (m.name.as_ref(), m.sha256)));
            let untouched = hello.libcuda_mapped.is_empty() && hello.nvidia_descriptors.is_empty();
            if ended.code == 0 && same && untouched { Ok(()) } else { Err(fault(ended.output)) }
        }
        Ok(Answer::Error(error)) => Err(fault(error.to_string())),
        Err(error) => Err(fault(format!("{} ({error}): {}", ended.how(), ended.output))),
    }
}

/// Every order of `0..count`.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let insert = |shorter: Vec<usize>| {
        (0..count).map(move |at| {
            let mut longer = shorter.clone();
            longer.insert(at, count - 1);
            longer
        })
    };
    permutations(count - 1).into_iter().flat_map(insert).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_once() {
        let orders = permutations(3);
        let distinct: std::collections::BTreeSet<_> = orders.iter().collect();
        assert_eq!((orders.len(), distinct.len()), (6, 6));
        assert!(orders.iter().all(|order| (0..3).all(|index| order.contains(&index))));
    }
}
