/** Flows that compute. The conductor's child processes import this module, too. */
import { scryptSync } from 'node:crypto'
import { input, linear, reduceTask, task, unordered } from 'jobboard'

/** Computes for some 50 ms: in the process of a conductor it would stop everything else for so long. */
const hash = (password: string) => scryptSync(password, 'salt', 32).toString('hex').slice(0, 16)

const first = task('first', {
  requires: ['passwords'],
  provides: 'firstHash',
  execute: ({ passwords }: { passwords: readonly string[] }) => hash(passwords[0] ?? ''),
})
const second = task('second', {
  requires: ['passwords'],
  provides: 'secondHash',
  execute: ({ passwords }: { passwords: readonly string[] }) => hash(passwords[1] ?? ''),
})
const hashes = reduceTask('hashes', {
  requires: ['firstHash', 'secondHash'],
  provides: 'hashes',
  reduce: (a: string, b: string) => `${a} ${b}`,
})

/** Two tasks that compute side by side, in two children; `hashes` is too small for one. */
export const hashing = linear(
  'hashing',
  input<{ passwords: readonly string[] }>(),
  unordered({ name: 'both', isolate: true }, input<{ passwords: readonly string[] }>(), first, second),
  hashes,
)

/** Native code that crashes takes its process along. `process.abort()` stands for it here. */
const resize = task('resize', {
  requires: ['picture'],
  provides: 'size',
  isolate: true,
  execute: ({ picture }: { picture: string }) => {
    if (picture === 'poison.png') process.abort()
    return picture.length
  },
})
export const pictures = linear('pictures', input<{ picture: string }>(), resize)

/** Ignores its signal and never ends. Its deadline is kept all the same: the child is killed. */
const endless = task('endless', {
  isolate: { grace: '100ms' },
  deadline: '300ms',
  execute: () => {
    while (true) Math.random()
  },
})
export const runaway = linear('runaway', input(), endless)
