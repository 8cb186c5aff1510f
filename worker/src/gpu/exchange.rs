//! The exchange on one GPU that plays both ranks: sums over many epochs, and the time-out.

use requal::{Failure, Outcome};

use crate::gpu::decode::expect_status;
use crate::gpu::device::{Buffer, Device, Stream};
use crate::module::abi::{EXCHANGE_TIMEOUT, ExchangeCall, P2pTable};
use crate::oracle::random::Rng;

/// Long enough for any machine that makes progress.
const PATIENT_NS: u64 = 2_000_000_000;

/// One rank's memory; inputs and outputs hold all epochs, so that nothing waits for the host in between.
struct Rank {
    partial: Buffer,
    out: Buffer,
    inbox: Buffer,
    flag: Buffer,
    epoch: Buffer,
    error: Buffer,
    summands: Vec<f32>,
}

/// Two ranks that exchange `count` values.
struct Pair {
    ranks: [Rank; 2],
    count: usize,
}

/// Exchanges `epochs` epochs of several sizes, on one stream and on two; then provokes a time-out. Returns the
/// number of epochs that were right on both ranks.
///
/// # Errors
/// `E-GPU-EXCHANGE`.
pub(crate) fn check(device: &Device, table: &P2pTable, epochs: usize) -> Outcome<u32> {
    let streams = [device.stream()?, device.stream()?];
    let mut right = 0;
    for count in [1, 257, 4 * 5 * 5120] {
        // One stream comes first: it loads every kernel while no other kernel waits.
        for rank_streams in [[&streams[0], &streams[0]], [&streams[0], &streams[1]]] {
            let pair = Pair::new(device, count, epochs)?;
            for epoch in 0..epochs {
                pair.push(table, rank_streams, epoch, 0)?;
                pair.push(table, rank_streams, epoch, 1)?;
                pair.finish(table, rank_streams, epoch, 0, PATIENT_NS)?;
                pair.finish(table, rank_streams, epoch, 1, PATIENT_NS)?;
            }
            device.synchronize()?;
            pair.judge(epochs)?;
            right += epochs as u32;
        }
    }
    check_timeout(device, table, &streams[0])?;
    check_arguments(device, table, &streams[0])?;
    Ok(right)
}

/// A peer that never pushes: the error word is set, the output is poisoned, and nothing is pushed any more.
fn check_timeout(device: &Device, table: &P2pTable, stream: &Stream) -> Outcome<()> {
    let pair = Pair::new(device, 257, 2)?;
    for epoch in 0..2 {
        pair.push(table, [stream, stream], epoch, 0)?;
        pair.finish(table, [stream, stream], epoch, 0, 1_000_000)?;
        // The peer comes too late; the error stays.
        pair.push(table, [stream, stream], epoch, 1)?;
    }
    device.synchronize()?;
    let [rank, peer] = &pair.ranks;
    let found = (word(&rank.error)?, word(&rank.epoch)?, word(&peer.flag)?);
    let poisoned = floats(&rank.out.read()?).iter().all(|value| value.is_nan());
    if found != (EXCHANGE_TIMEOUT, 1, 1) || !poisoned {
        return Err(Failure::refused(
            "E-GPU-EXCHANGE",
            "a time-out does not leave the state that the contract says",
        )
        .expected(format!("error {EXCHANGE_TIMEOUT}, one epoch pushed, all outputs NaN"))
        .found(format!("error {}, epoch {}, peer's flag {}, NaN: {poisoned}", found.0, found.1, found.2)));
    }
    Ok(())
}

fn check_arguments(device: &Device, table: &P2pTable, stream: &Stream) -> Outcome<()> {
    let pair = Pair::new(device, 1, 1)?;
    let call = pair.call(0, 0, PATIENT_NS);
    for (call, status) in [
        (ExchangeCall { peer_flag: 0, ..call }, -1),
        (ExchangeCall { rank: 2, ..call }, -2),
        (ExchangeCall { count: 0, ..call }, -2),
        (ExchangeCall { timeout_ns: 0, ..call }, -2),
        (ExchangeCall { out: call.out + 2, ..call }, -3),
    ] {
        expect_status("push", status, stream.status(table.push, &call)?)?;
        expect_status("finish", status, stream.status(table.finish, &call)?)?;
    }
    Ok(())
}

impl Pair {
    fn new(device: &Device, count: usize, epochs: usize) -> Outcome<Self> {
        let rank = |seed: u64| -> Outcome<Rank> {
            let mut rng = Rng::new(seed + count as u64);
            let summands: Vec<f32> = (0..count * epochs).map(|_| rng.next_bell() as f32).collect();
            let bytes: Vec<u8> = summands.iter().flat_map(|value| value.to_le_bytes()).collect();
            Ok(Rank {
                partial: device.upload(&bytes)?,
                out: device.poisoned(4 * count * epochs, 0xa5)?,
                inbox: device.poisoned(4 * 2 * count, 0xff)?,
                flag: device.upload(&[0; 4])?,
                epoch: device.upload(&[0; 4])?,
                error: device.upload(&[0; 4])?,
                summands,
            })
        };
        Ok(Self { ranks: [rank(4000)?, rank(5000)?], count })
    }

    fn call(&self, epoch: usize, rank: usize, timeout_ns: u64) -> ExchangeCall {
        let (own, peer) = (&self.ranks[rank], &self.ranks[1 - rank]);
        let offset = (4 * self.count * epoch) as u64;
        ExchangeCall {
            partial: own.partial.address() + offset,
            out: own.out.address() + offset,
            inbox: own.inbox.address(),
            peer_inbox: peer.inbox.address(),
            flag: own.flag.address(),
            peer_flag: peer.flag.address(),
            epoch: own.epoch.address(),
            error: own.error.address(),
            timeout_ns,
            count: self.count as u32,
            rank: rank as u32,
        }
    }

    fn push(&self, table: &P2pTable, streams: [&Stream; 2], epoch: usize, rank: usize) -> Outcome<()> {
        streams[rank].launch("push", table.push, &self.call(epoch, rank, PATIENT_NS))
    }

    fn finish(
        &self,
        table: &P2pTable,
        streams: [&Stream; 2],
        epoch: usize,
        rank: usize,
        timeout_ns: u64,
    ) -> Outcome<()> {
        streams[rank].launch("finish", table.finish, &self.call(epoch, rank, timeout_ns))
    }

    fn judge(&self, epochs: usize) -> Outcome<()> {
        let [first, second] = &self.ranks;
        let expected: Vec<u32> =
            first.summands.iter().zip(&second.summands).map(|(a, b)| (a + b).to_bits()).collect();
        for (number, rank) in self.ranks.iter().enumerate() {
            let found: Vec<u32> = floats(&rank.out.read()?).iter().map(|value| value.to_bits()).collect();
            let state = (word(&rank.error)?, word(&rank.epoch)?, word(&rank.flag)?);
            let wrong = expected.iter().zip(&found).filter(|(a, b)| a != b).count();
            if wrong != 0 || state != (0, epochs as u32, epochs as u32) {
                return Err(Failure::refused(
                    "E-GPU-EXCHANGE",
                    format!("the exchange is wrong on rank {number}"),
                )
                .expected(format!("rank 0's + rank 1's, {epochs} epochs of {} values", self.count))
                .found(format!(
                    "{wrong} wrong values, error {}, epoch {}, flag {}",
                    state.0, state.1, state.2
                )));
            }
            rank.inbox.read()?;
        }
        Ok(())
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()
}

fn word(buffer: &Buffer) -> Outcome<u32> {
    let bytes = buffer.read()?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}
