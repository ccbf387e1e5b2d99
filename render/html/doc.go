// Package html writes the report as one self-contained page: no script, no
// font, no picture from elsewhere, fit for printing and for attaching to a
// review.
package html
