import { boardContract, WINDOW_PARTS } from '../../../contract/board.ts'
import { sqliteBoards } from './boards.ts'

boardContract(sqliteBoards({ parameters: 'window=3' }), { parts: WINDOW_PARTS })
