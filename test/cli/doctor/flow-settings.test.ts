/** What `jobboard doctor` finds of the settings of flows. */
import { expect, onTestFinished, test } from 'vitest'
import { boardInternals, memoryTestBackend } from '../../../src/board/internal.ts'
import { FLOW_SETTINGS } from '../../../src/board/settings/record.ts'
import { examineFlowSettings } from '../../../src/cli/doctor/flow-settings.ts'
import { input, type JobBoard, linear, task } from '../../../src/index.ts'
import { ManualClock } from '../../../src/testing/index.ts'

/** Opens a board on which conductors have had the flows `import` and `report-a`. */
async function setup(): Promise<JobBoard> {
  const board = await memoryTestBackend({ clock: new ManualClock() }).open({ who: 'ada' })
  onTestFinished(() => board.close())
  const flows = ['import', 'report-a'].map((name) => linear(name, input<object>(), task('t', { execute: () => 1 })))
  await boardInternals(board).publishFlows(flows)
  return board
}

test('a board without settings has no findings, and settings that stop nothing are counted', async () => {
  const board = await setup()
  expect(await examineFlowSettings(board)).toEqual([])
  await board.flowSettings.set('report*', { maxAttempts: 7 })
  await board.flowSettings.set('*', { enabled: true })
  expect(await examineFlowSettings(board)).toEqual([{ severity: 'ok', about: 'flows', text: '2 flow settings' }])
})

test('flows and patterns that are not enabled are reported, with the command that enables them', async () => {
  const board = await setup()
  await board.flowSettings.set('import', { enabled: false }, { reason: 'the disk is full' })
  await board.flowSettings.set('report*', { enabled: false, queue: 'bulk' }, { by: 'bob' })
  const findings = await examineFlowSettings(board)
  expect(findings).toEqual([
    {
      ...{ severity: 'warning', about: 'flow', advice: 'jobboard flows unset import enabled' },
      text: expect.stringMatching(
        /^flow import was disabled by ada at \d{4}-.*Z \(the disk is full\): none of its jobs starts$/,
      ),
    },
    {
      ...{ severity: 'warning', about: 'flow', advice: "jobboard flows unset 'report*' enabled" },
      text: expect.stringMatching(/^flow report\* was disabled by bob at \d{4}-.*Z: none of its jobs starts$/),
    },
  ])
})

test('settings of a newer release, and those whose name no flow has, are reported', async () => {
  const board = await setup()
  await board.flowSettings.set('reprot*', { maxAttempts: 7 })
  await board.flowSettings.set('report', { maxAttempts: 7 })
  await board.flowSettings.set('report-a', { maxAttempts: 7 })
  await boardInternals(board)
    .records.of({ ...FLOW_SETTINGS, format: 2, parse: (value) => value as object })
    .write([{ id: 'imp*', revision: undefined, value: {} }])
  expect(await examineFlowSettings(board)).toEqual([
    {
      ...{ severity: 'error', about: 'flow', text: expect.stringMatching(/imp\*.*none of its jobs starts here$/) },
      advice: "upgrade this release, or remove them: jobboard flows unset 'imp*'",
    },
    ...['report', 'reprot*'].map((flow) => ({
      ...{ severity: 'ok', about: 'flow', text: `settings of flow ${flow}: matches no flow that a conductor has had` },
    })),
  ])
  // The advice works.
  await board.flowSettings.unset('imp*')
  expect((await examineFlowSettings(board)).map(({ severity }) => severity)).toEqual(['ok', 'ok'])
})
