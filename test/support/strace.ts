/** The system calls of a process and of all processes that it starts, in one order: `strace`, of Debian's package. */
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { startGuarded } from './guarded-process.ts'
import { type Provision, provide, which } from './install.ts'

/** strace follows processes of Linux only. */
const STRACE: Provision = {
  name: 'strace',
  packages: ['strace'],
  installed: async () => (await which('strace')) !== undefined,
}

/** Returns whether there is strace; false where JOBBOARD_SKIP says to do without. */
export async function hasStrace(): Promise<boolean> {
  return (await provide(STRACE, { here: true })) !== 'skip'
}

/** A system call that has begun. The lines of the log are the time: what is on an earlier line was earlier for every process. */
export interface SystemCall {
  /** The number of the thread. */
  readonly thread: string
  readonly name: string
  /** The arguments as strace writes them; strings and paths are in hexadecimal digits: see {@link decode}. */
  readonly args: string
  /** The line on which the call had begun, and had done nothing. */
  readonly begin: number
  /** The line on which the call had ended; infinite for one that never did. */
  readonly end: number
  /** Negative for an error. */
  readonly result: number
}

export interface TraceOptions {
  /** The command, and its arguments. */
  readonly command: readonly string[]
  /** The names of the system calls. */
  readonly calls: readonly string[]
  /** Where strace writes its log. */
  readonly log: string
  /** Where the output of the processes goes. */
  readonly output: string
}

/** Runs a command to its end, and writes down its calls. @throws Error with its output if it fails */
export async function trace({ command, calls, log, output }: TraceOptions): Promise<void> {
  // Writes through io_uring are no system calls.
  const withoutRing = ['-E', 'UV_USE_IO_URING=0']
  // Every string whole and in hexadecimal digits; with seccomp, the calls that are not named cost nothing.
  const options = ['-f', '--seccomp-bpf', '-y', '-xx', '-s', '100000000', '-e', `trace=${calls.join(',')}`, '-o', log]
  // SIGKILL would leave the processes behind without strace.
  const traced = await startGuarded(['strace', ...withoutRing, ...options, ...command], {
    logFile: output,
    lastSignal: 'SIGTERM',
  })
  const code = await traced.ended
  if (code === 0) return
  throw new Error(`strace ${command.join(' ')} ended (${code}) and said:\n${await readFile(output, 'utf8')}`)
}

const LINE = /^(\d+) +(<\.\.\. \w+ resumed>)?(.*)$/s
const UNFINISHED = ' <unfinished ...>'
const CALL = /^(\w+)\((.*)\) += (-?\d+|\?)/s

interface Begun {
  readonly text: string
  readonly begin: number
}

/** Reads a log of strace. Returns the calls in the order in which they began. */
export async function readTrace(log: string): Promise<SystemCall[]> {
  const calls: SystemCall[] = []
  const begun = new Map<string, Begun>()
  const add = (thread: string, { text, begin }: Begun, end: number) => {
    const [, name, args, result] = CALL.exec(text) ?? []
    // Others are signals, and ends of processes.
    if (name === undefined || args === undefined) return
    const isKnown = result !== '?'
    calls.push({ thread, name, args, begin, end: isKnown ? end : Number.POSITIVE_INFINITY, result: Number(result) })
  }
  let number = 0
  for await (const line of createInterface({ input: createReadStream(log, 'latin1') })) {
    number += 1
    const [, thread = '', resumed, rest = ''] = LINE.exec(line) ?? []
    const before = resumed === undefined ? undefined : begun.get(thread)
    begun.delete(thread)
    const text = (before?.text ?? '') + rest
    if (rest.endsWith(UNFINISHED)) begun.set(thread, { text: text.slice(0, -UNFINISHED.length), begin: number })
    else add(thread, { text, begin: before?.begin ?? number }, number)
  }
  for (const [thread, each] of begun) add(thread, { ...each, text: `${each.text}) = ?` }, Number.POSITIVE_INFINITY)
  return calls.sort((one, other) => one.begin - other.begin)
}

/** Decodes a string or a path of the arguments. */
export function decode(digits: string): Buffer {
  return Buffer.from(digits.replaceAll('\\x', ''), 'hex')
}
