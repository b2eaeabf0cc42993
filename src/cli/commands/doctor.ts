/** The command `jobboard doctor`: finds problems, and prints how to solve them. */
import type { Command } from 'commander'
import { Redactor } from '../../core/redaction.ts'
import { toMilliseconds } from '../../core/time.ts'
import { type CliContext, DONE, type ExitCode, FAILED, type RunAction } from '../context.ts'
import { eachAsJson, type FlagTable, type OptionsOf, withFlags } from '../input/flags.ts'
import { parseDuration, redactedKeys } from '../input/shared-options.ts'
import { printDrawn, printJson } from '../output/output.ts'

const STUCK_AFTER = '1h'

const FLAGS = {
  '--stuck-after <duration>': `age from which on a claim is examined (default: ${STUCK_AFTER})`,
  '--json': eachAsJson('finding'),
} satisfies FlagTable

type DoctorCommandOptions = OptionsOf<typeof FLAGS>

export function defineDoctor(program: Command, run: RunAction): void {
  withFlags(program.command('doctor'), FLAGS)
    .summary('find problems, and what to do about them')
    .description(
      'Examines board and logbooks: whether they can be reached, the versions, clocks and rights, claims that are stuck, ' +
        'jobs that kill their owners, postings that cannot be read, jobs of flows that no conductor knows, and ' +
        'numbers that run out. Each finding says what to do. The exit code is 1 where there is an error. It changes ' +
        'nothing.',
    )
    .addHelpText(
      'after',
      '\nExample:\n  $ jobboard doctor --board zookeeper://127.0.0.1:2181/demo --persistence directory:./logbooks',
    )
    .action(run(doctor))
}

async function doctor(options: DoctorCommandOptions, context: CliContext): Promise<ExitCode> {
  const stuckAfter = toMilliseconds(parseDuration(options.stuckAfter ?? STUCK_AFTER, '--stuck-after'), '--stuck-after')
  const { examine } = await import('../doctor/examine.ts')
  const redaction = new Redactor(redactedKeys(options, context))
  const counts = { ok: 0, warning: 0, error: 0 }
  for await (const found of examine({ options, context, stuckAfter })) {
    const finding = redaction.texts(found)
    counts[finding.severity] += 1
    if (options.json) await printJson(context, [finding])
    else await printDrawn(context, ({ findingLines }, screen) => findingLines(finding, screen))
  }
  if (!options.json) await printDrawn(context, ({ verdictLine }, screen) => ['', verdictLine(counts, screen)])
  return counts.error > 0 ? FAILED : DONE
}
