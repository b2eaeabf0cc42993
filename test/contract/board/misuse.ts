/** What is said to whoever has no compiler, or has typed something wrong: by name, at once, and nothing has happened. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Claim, Job, JobBoard } from '../../../src/board/index.ts'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import { all } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

interface Setup {
  readonly board: JobBoard
  readonly job: Job
  readonly claim: Claim
}

/** As from JavaScript. */
async function call(target: object, method: string, ...args: unknown[]): Promise<unknown> {
  const answer = await Reflect.apply(Reflect.get(target, method), target, args)
  return isSeries(answer) ? all(answer) : answer
}

function isSeries(answer: unknown): answer is AsyncIterable<unknown> {
  return Symbol.asyncIterator in Object(answer)
}

export function misuseContract({ open }: Place): void {
  let setup: Setup
  beforeEach(async () => {
    const board = await open()
    await board.post('flow', {}, { name: 'claimed' })
    const [claim] = await board.claimNext()
    setup = { board, claim, job: await board.post('flow', {}, { name: 'job' }) }
  })

  test('a name of an owner may have 1,024 bytes, which others read as they are; a longer one is refused', async () => {
    // Two bytes each.
    const who = 'é'.repeat(512)
    const owner = await open({ who })
    const claim = await owner.claim(setup.job)
    expect(await setup.board.findOwner(await setup.board.find(claim.job.uuid))).toBe(who)
    await claim.abandon()
    const failure = await rejectionOf(open({ who: `${who}x` }))
    expect(failure).toBeInstanceOf(InvalidArgument)
    expect(String(failure)).toContain('who must have at most 1024 bytes')
  })

  const NOT_A_JOB = 'the argument must be a Job of a board; for a uuid, pass await board.find(uuid)'
  describe.each<[keyof JobBoard & string, [what: string, args: unknown[], says: string][]]>([
    [
      'post',
      [
        ['nothing', [], 'post: flow must be a flow or the name of one'],
        ['a number', [5, {}], 'post: flow must be a flow or the name of one'],
        ['what only has a name', [{ name: 'flow' }, {}], 'post: flow must be a flow or the name of one'],
        ['a deadline that is an instant', ['flow', {}, { deadline: new Date() }], 'deadline: an instant (a Date)'],
        ['an endless delay', ['flow', {}, { delay: Number.POSITIVE_INFINITY }], 'delay: Infinity is more than'],
      ],
    ],
    [
      'jobs',
      [
        [
          'a misspelt option',
          [{ onlyUnclaimd: true }],
          'jobs has no option "onlyUnclaimd"; did you mean onlyUnclaimed?',
        ],
        ['a filter that is a text', ['flow'], 'jobs: the options must be an object'],
        ['a priority that there is not', [{ priority: 'URGENT' }], 'jobs: priority must be one of VERY_HIGH'],
        ['a queue whose name is not valid', [{ queue: 'a*' }], 'jobs: queue "a*" must not contain *'],
        ['a number for a name', [{ name: 5 }], 'jobs: name must be a string'],
        ['an odd flag', [{ onlyUnclaimed: 'no' }], 'jobs: onlyUnclaimed must be true or false'],
      ],
    ],
    [
      'wait',
      [
        ['a misspelt option', [{ timout: 1 }], 'wait has no option "timout"; did you mean timeout?'],
        ['a number', [5], 'wait: the options must be an object'],
        ['a signal that is none', [{ signal: 5 }], 'signal must be an AbortSignal'],
        ['a controller for a signal', [{ signal: new AbortController() }], 'signal must be an AbortSignal'],
      ],
    ],
    [
      'claimNext',
      [
        ['a misspelt option', [{ mx: 2 }], 'claimNext has no option "mx"; did you mean max?'],
        ['no jobs at all', [{ max: 0 }], 'max must be a whole number from 1, not 0'],
        ['half a job', [{ max: 1.5 }], 'max must be a whole number from 1, not 1.5'],
        ['a text for a number', [{ max: '2' }], 'max must be a whole number from 1, not 2'],
        ['accept that is a name', [{ accept: 'job' }], 'claimNext: accept must be a function'],
        ['accept that is async', [{ accept: async () => false }], 'accept returned a promise'],
        ['a signal that is none', [{ signal: 5 }], 'signal must be an AbortSignal'],
      ],
    ],
    [
      'claims',
      [
        ['max', [{ max: 2 }], 'claims has no option "max"'],
        ['accept that is none', [{ accept: {} }], 'claims: accept must be a function'],
        ['accept that is async', [{ accept: async () => true }], 'accept returned a promise'],
        ['a signal that is none', [{ signal: 5 }], 'signal must be an AbortSignal'],
      ],
    ],
    ['find', [['a job', [{}], 'find: the uuid or reference must be a non-empty string']]],
    ['findOwner', [['a uuid', ['uuid'], NOT_A_JOB]]],
    ['waitingFor', [['nothing', [], NOT_A_JOB]]],
    ['claim', [['a uuid', ['uuid'], NOT_A_JOB]]],
    ['consume', [['a uuid', ['uuid'], NOT_A_JOB]]],
    ['abandon', [['a uuid', ['uuid'], NOT_A_JOB]]],
    ['trash', [['null', [null], NOT_A_JOB]]],
    ['cancel', [['nothing', [], NOT_A_JOB]]],
    ['restore', [['a uuid', ['uuid'], 'the argument must be a TrashedJob, as board.trashed() yields them']]],
    ['purge', [['nothing', [], 'the argument must be a TrashedJob']]],
    [
      'registerEntity',
      [
        ['nothing', [{}], 'registerEntity: kind and name must be non-empty strings'],
        ['no metadata', [{ kind: 'worker', name: 'one' }], 'registerEntity: metadata must be an object'],
      ],
    ],
    ['entities', [['nothing', [], "entities: kind must be a non-empty string, as in board.entities('conductor')"]]],
  ])('board.%s', (method, cases) => {
    test.each(cases)('%s is refused', async (_, args, says) => {
      const failure = await rejectionOf(call(setup.board, method, ...args))
      expect(failure).toBeInstanceOf(InvalidArgument)
      expect(String(failure)).toContain(says)
      expect(setup.job.state).toBe('UNCLAIMED')
      expect(await setup.board.countJobs()).toBe(2)
    })
  })

  test('a reason that is no object is refused by cancel', async () => {
    const failure = await rejectionOf(call(setup.board, 'cancel', setup.job, 'a mistake'))
    expect(String(failure)).toContain('cancel: the options must be an object, as in { reason: … }')
    expect(setup.job.state).toBe('UNCLAIMED')
  })

  test('waiting for one job takes options, too', async () => {
    expect(String(await rejectionOf(call(setup.job, 'wait', { timeot: 1 })))).toContain('did you mean timeout?')
  })

  test.each<['abandon' | 'trash', unknown, string]>([
    ['abandon', { fialed: true }, 'abandon has no option "fialed"; did you mean failed?'],
    ['abandon', 'going home', 'abandon: the options must be an object, as in { reason: … }'],
    ['abandon', { failed: 'yes' }, 'abandon: failed must be true or false'],
    ['abandon', { newestRun: -1 }, 'abandon: newestRun must be a whole number from 0, not -1'],
    ['abandon', { size: 'huge' }, 'abandon: size must be one of small, medium, large'],
    ['abandon', { queue: 'a,b' }, 'abandon: queue "a,b" must not contain'],
    ['abandon', { delay: 'soon' }, 'delay: "soon" is not a duration'],
    ['trash', { resaon: 'x' }, 'trash has no option "resaon"; did you mean reason?'],
    ['trash', { reason: 5 }, 'trash: reason must be a string'],
    ['trash', { failure: new Error('x') }, 'trash: failure must be a Failure, as failureOf(error) returns it'],
  ])('claim.%s of %j is refused, and the claim is held', async (method, options, says) => {
    const failure = await rejectionOf(call(setup.claim, method, options))
    expect(failure).toBeInstanceOf(InvalidArgument)
    expect(String(failure)).toContain(says)
    expect(setup.claim.job.state).toBe('CLAIMED')
    await setup.claim.consume()
  })

  test('priorities are asked for in any case, as they are posted', async () => {
    await call(setup.board, 'post', 'flow', {}, { name: 'urgent', priority: 'high' })
    const found = await call(setup.board, 'jobs', { priority: 'High' })
    expect(found).toMatchObject([{ name: 'urgent' }])
  })
}
