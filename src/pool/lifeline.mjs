/**
 * The lifeline of a child, in a thread of its own: it runs although the child computes without a pause.
 *
 * It answers each beat of the pool with its bytes, which shows that the process is not stopped. It kills the child and all
 * processes that the child has started (SIGKILL to the process group) when the pool's process has ended, which closes the
 * lifeline, and when the pool has sent nothing for too long: then the pool's process is stopped, its claims are passing
 * to other owners, and work that goes on would overlap theirs. Each beat says for how many milliseconds this is allowed: at most
 * `silenceMs`, and less where the claims end earlier, because the pool's process had been cut off before it was stopped.
 *
 * Plain JavaScript, because a thread is started without the loaders of the child.
 */
import { Socket } from 'node:net'
import { workerData } from 'node:worker_threads'

/** The time in which a byte that has arrived may still be read: a child that was stopped itself finds its timer over first. */
const REREAD_MS = 250

/** @type {{ fd: number, silenceMs: number }} */
const { fd, silenceMs } = workerData
const lifeline = new Socket({ fd })
let lastHeardAt = performance.now()
let endsAt = lastHeardAt + silenceMs
let unread = ''
/** @type {NodeJS.Timeout | undefined} */
let timer
/** Grows when the watch begins anew: a decision about an earlier time is void then. */
let watches = 0

function killGroup() {
  try {
    process.kill(-process.pid, 'SIGKILL')
  } catch {
    process.kill(process.pid, 'SIGKILL')
  }
}

function killIfSilent() {
  const [checkedAt, watch] = [performance.now(), watches]
  const decide = () => {
    if (watch !== watches) return
    if (lastHeardAt < checkedAt) killGroup()
    else watchSilence()
  }
  // After the next reading: a timer comes before it, and on a busy machine this thread may not have run since a beat arrived.
  timer = setTimeout(() => setImmediate(decide), REREAD_MS)
}

function watchSilence() {
  watches += 1
  const left = endsAt - performance.now()
  if (left <= 0) killIfSilent()
  else timer = setTimeout(watchSilence, left)
}

/** Takes the newest beat; a beat may arrive in parts. */
function takeBeats(text) {
  const lines = (unread + text).split('\n')
  unread = lines.pop() ?? ''
  const newest = lines.at(-1)
  if (newest === undefined || !Number.isFinite(silenceMs)) return
  lastHeardAt = performance.now()
  const previous = endsAt
  endsAt = lastHeardAt + Number(newest)
  // The timer may be set for later than this beat allows.
  if (endsAt >= previous) return
  clearTimeout(timer)
  watchSilence()
}

lifeline.on('data', (bytes) => {
  takeBeats(bytes.toString('latin1'))
  lifeline.write(bytes)
})
lifeline.on('error', killGroup)
lifeline.on('close', killGroup)
if (Number.isFinite(silenceMs)) watchSilence()
