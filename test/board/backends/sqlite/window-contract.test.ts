import { boardContract, WINDOW_PARTS } from '../../../contract/board.ts'
import { sqliteBoards } from './boards.ts'

/** So small that every job but a few is outside. */
boardContract(sqliteBoards({ parameters: 'window=3' }), { variant: WINDOW_PARTS, opened: ['as used'] })
