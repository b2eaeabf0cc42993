/** Which types the options of a command have, by the table of its flags. Checked by `tsc --noEmit`; nothing here is ever run. */
import {
  count,
  type FlagTable,
  type FlagValues,
  type OptionsOf,
  oneOf,
  shared,
  someOf,
  texts,
  withFlags,
} from '../../src/cli/input/flags.ts'
import type { SharedOptions } from '../../src/cli/input/shared-options.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
declare function same<A, B>(answer: Same<A, B>): void

const FLAGS = {
  '--yes': 'a flag without a value',
  '--remove-trash-after <duration>': 'a text, whose name has several words',
  '--health <[host:]port>': 'a text, with brackets in its placeholder',
  '--limit <n>': ['a number', count({ most: 10 })],
  '--on-failure <what>': ['a word', oneOf(['retry', 'consume'])],
  '--state <state>': ['words', someOf(['PENDING', 'RUNNING'])],
  '--flows <module>': ['texts', texts],
  ...shared('--json', '--max-attempts <n>'),
} satisfies FlagTable

interface Values {
  readonly yes?: boolean
  readonly removeTrashAfter?: string
  readonly health?: string
  readonly limit?: number
  readonly onFailure?: 'retry' | 'consume'
  readonly state?: readonly ('PENDING' | 'RUNNING')[]
  readonly flows?: readonly string[]
  readonly json?: boolean
  readonly maxAttempts?: number
}

same<
  { [Name in keyof FlagValues<typeof FLAGS>]: FlagValues<typeof FLAGS>[Name] },
  { [Name in keyof Values]: Values[Name] }
>(true)
same<OptionsOf<typeof FLAGS>['board'], SharedOptions['board']>(true)

export const refused = (command: Parameters<typeof withFlags>[0]) => [
  // @ts-expect-error a flag begins with two dashes
  withFlags(command, { json: 'print a JSON object' }),
  // @ts-expect-error no command shares it
  shared('--misspelt'),
  // @ts-expect-error a kind makes a parser
  withFlags(command, { '--limit <n>': ['a number', 3] }),
]
