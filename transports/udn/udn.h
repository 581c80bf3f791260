#ifndef QN_TRANSPORTS_UDN_UDN_H
#define QN_TRANSPORTS_UDN_UDN_H

/**
 * Queuepairs over messages of words (core/words/words.h): transport `udn`,
 * whose device is a shared one.
 *
 * A frame is one message of words to queue 0 of the peer's core: a head and up
 * to 7 words of payload, so that 14 frames fit into a core.
 *
 *   head  58 ...... 43 42 ...... 27 26 .... 10 9 .. 4  3    2 .. 0
 *         sequence     acknowledged total      length  lane kind
 *
 * Frames of all peers arrive in one queue, and a peer that is not read must not
 * stop the others. Therefore each lane has a window: a sender has at most
 * QN_UDN_WINDOW frames on their way that the peer has not given back. So what
 * has arrived fits into private memory of the receiver, and every call takes
 * all out of the core first. How many were given back travels in the head of
 * each frame in the other direction, and in a message of one head (kind ACK)
 * after half a window, or at a flush if it is more than one. Queues 1 to 3
 * belong to other users; what they do not take also fills the core.
 *
 * Beyond core/qp.h: on this device a send may answer QN_EPEERDEAD before
 * qn_qp_down, if the core is full and another node has told the device.
 */

#include "core/qp.h"

#define QN_UDN_QUEUE       0u  /* of the four, that queuepairs use */
#define QN_UDN_FRAME_WORDS 8u  /* with its head */
#define QN_UDN_FRAME_BYTES 56u /* payload of a frame */
#define QN_UDN_WINDOW      14u /* frames of a lane; a core has room for them */

extern const struct qn_transport qn_udn;

/** A device of words, shared; what is behind its attachments are the links. */
extern const struct qn_device_type qn_udn_device;

#endif
